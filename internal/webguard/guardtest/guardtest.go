// Package guardtest simulates hostile clients for tests of servers.
package guardtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Outlasts checks that a server with that limit of connections answers a client although as many other clients never
// finish their headers and send a byte now and then ("slowloris"). Within limit, which is the time for headers and a
// little more, the server must have closed all of them.
func Outlasts(t *testing.T, address, path string, connections int, limit time.Duration) {
	t.Helper()
	var slow sync.WaitGroup
	for range connections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		slow.Go(func() {
			_, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nX: "))
			for err == nil {
				time.Sleep(250 * time.Millisecond)
				_, err = c.Write([]byte("x"))
			}
		})
	}
	start := time.Now()
	client := &http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + address + path)
	if err != nil {
		t.Fatalf("beside %d slow clients: %v", connections, err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("beside %d slow clients: status %d", connections, answer.StatusCode)
	}
	gone := make(chan bool)
	go func() {
		slow.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(limit - time.Since(start)):
		t.Errorf("slow clients are still there after %v", limit)
	}
}

// Survives checks that a server with that limit of connections answers a client within a second while four times as
// many clients keep connections open: silent, in the middle of a request's headers, or idle after an answer. The
// number of clients must cost neither goroutines nor memory, and the server must answer afterwards.
func Survives(t *testing.T, address, path string, connections int) {
	t.Helper()
	ask := func(when string) {
		t.Helper()
		client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Get("http://" + address + path)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d", when, answer.StatusCode)
		}
	}
	ask("before a flood")
	goroutines, memory := runtime.NumGoroutine(), inUse()
	var flood []net.Conn
	leave := func() {
		for _, c := range flood {
			c.Close()
		}
		flood = nil
	}
	defer leave()
	for i := range 4 * connections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		flood = append(flood, c)
		if i%3 > 0 {
			io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n") // errors: the server closed it
		}
		if i%3 > 1 {
			io.WriteString(c, "\r\n")
		}
		if i%connections == connections/2 {
			ask(fmt.Sprintf("beside %d connections", len(flood)))
		}
	}
	ask("beside a flood")
	// a connection has a goroutine, and one more while its request is being answered
	if n := runtime.NumGoroutine() - goroutines; n > 2*connections+16 {
		t.Errorf("%d connections have started %d goroutines; the limit is %d connections", len(flood), n, connections)
	}
	if n := inUse() - memory; n > int64(connections)*64<<10+8<<20 {
		t.Errorf("%d connections take %d bytes; the limit is %d connections", len(flood), n, connections)
	}
	leave()
	ask("after a flood")
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines+16; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines after a flood, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
}

// inUse returns the bytes of the heap and of stacks, without garbage.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
