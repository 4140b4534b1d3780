// Package guardtest has clients that mean a server no good, for tests of servers.
package guardtest

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Outlasts checks that a server which takes so many connections answers a client although as many others never finish
// their headers, of which they send a byte now and then ("slowloris"): within limit, the time for headers and a little
// more, it has hung up on all of them.
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
