package webguard

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A client that is refused learns so at once, also if it has not sent its body: because it waits for 100 Continue, or
// because there is much of it.
func TestARefusedBodyNeedNotArrive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	})}
	go Serve(server, l, 2)
	defer server.Close()
	for _, head := range []string{"Content-Length: 100\r\nExpect: 100-continue", "Content-Length: 600000"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n"+head+"\r\n\r\n")
		answer := make([]byte, 64)
		n, err := conn.Read(answer)
		if err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 403") {
			t.Errorf("%s: %q, %v", head, answer[:n], err)
		}
		conn.Close()
	}
}

// While all connections have a request, the next connection waits for one to end; none is closed.
func TestConnectionsInUseKeepTheirPlace(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in, out := make(chan bool), make(chan bool)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		if r.URL.Path == "/slow" {
			in <- true
			<-out
		}
		io.WriteString(w, "answered")
	})}
	served := make(chan error, 1)
	go func() { served <- Serve(server, l, 2) }()
	ask := func(path string) chan error {
		answered := make(chan error, 1)
		go func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			r, err := client.Post("http://"+l.Addr().String()+path, "text/plain", strings.NewReader("a body"))
			if err == nil {
				_, err = io.ReadAll(r.Body)
				r.Body.Close()
			}
			answered <- err
		}()
		return answered
	}
	first, second := ask("/slow"), ask("/slow")
	<-in
	<-in
	third := ask("/")
	select {
	case err := <-third:
		t.Fatalf("a third connection was answered beside two in use: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	out <- true // ends one of the two requests
	if err := <-third; err != nil {
		t.Error(err)
	}
	again := ask("/slow")
	<-in
	ask("/") // still waits when the server closes
	time.Sleep(10 * time.Millisecond)
	close(out)
	for _, answered := range []chan error{first, second, again} {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	server.Close()
	if err := <-served; err != http.ErrServerClosed {
		t.Error(err)
	}
}

// A closed server accepts no further connection, even if one is waiting for a place.
func TestClosingEndsTheWaitForAPlace(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in, out := make(chan bool), make(chan bool)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		in <- true
		<-out
	})}
	served := make(chan error, 1)
	go func() { served <- Serve(server, l, 1) }()
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	<-in
	time.Sleep(20 * time.Millisecond) // the second one is accepted and waits
	go server.Close()
	select {
	case <-served:
	case <-time.After(5 * time.Second):
		t.Error("the server still waits for a place")
	}
	close(out)
}

// The next connection replaces the one whose body has been longest without a byte, whether a handler reads the body or
// net/http reads its rest. The other bodies arrive.
func TestSlowBodiesGiveWay(t *testing.T) {
	for _, path := range []string{"/read", "/left"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		in := make(chan bool, 3)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			in <- true
			if r.URL.Path == "/read" {
				if _, err := io.ReadAll(r.Body); err != nil {
					return
				}
			}
			io.WriteString(w, "answered")
		})}
		served := make(chan error, 1)
		go func() { served <- Serve(server, l, 2) }()
		var slow []net.Conn
		send := func(c net.Conn, text string) {
			t.Helper()
			time.Sleep(10 * time.Millisecond)
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(5 * time.Second))
			send(c, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\na")
			<-in
			slow = append(slow, c)
		}
		send(slow[0], "b") // now the second body has been longest without a byte
		time.Sleep(20 * time.Millisecond)
		client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		if answer, err := client.Get("http://" + l.Addr().String() + "/"); err != nil {
			t.Fatalf("%s: %v", path, err)
		} else {
			answer.Body.Close()
		}
		send(slow[0], "c")
		var head [15]byte
		if _, err := io.ReadFull(slow[0], head[:]); err != nil || string(head[:]) != "HTTP/1.1 200 OK" {
			t.Errorf("%s: the body that arrived is answered by %q, %v", path, head, err)
		}
		if text, _ := io.ReadAll(slow[1]); strings.Contains(string(text), "answered") {
			t.Errorf("%s: the slower body kept its place", path)
		}
		server.Close()
		if err := <-served; err != http.ErrServerClosed {
			t.Error(err)
		}
	}
}
