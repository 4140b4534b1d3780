package webguard

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// While all connections have a request in hand the next one waits for its end; none of them is hung up on.
func TestConnectionsInUseKeepTheirPlace(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in, out := make(chan bool), make(chan bool)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
			r, err := client.Get("http://" + l.Addr().String() + path)
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
	out <- true // one of the two
	if err := <-third; err != nil {
		t.Error(err)
	}
	again := ask("/slow")
	<-in
	ask("/") // waits when the server closes
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

// A server that is closed takes no connection more, also while one waits for a place.
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
