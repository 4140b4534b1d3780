package webguard

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// Serve answers on l with at most n connections at a time. The next one takes the place of the one that has been
// longest without a request, be it between two or before its first one has arrived whole: silent and slow clients keep
// nobody out, however many they are. While all n have a request in hand, it waits for one of them to end, and those
// behind it wait in the queue of the system. server.ConnState must be nil.
func Serve(server *http.Server, l net.Listener, n int) error {
	c := &crowd{Listener: l, most: n, waiting: list.New(), of: map[net.Conn]*list.Element{}}
	c.change.L = &c.mu
	server.ConnState = c.note
	return server.Serve(c)
}

// A crowd is the connections of a server.
type crowd struct {
	net.Listener
	most int

	mu      sync.Mutex
	change  sync.Cond
	open    int
	leaving net.Conn // what gives its place to another; nil if nothing does
	closed  bool
	waiting *list.List                 // connections without a request, the longest first
	of      map[net.Conn]*list.Element // theirs
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.open >= c.most && !c.closed {
		if first := c.waiting.Front(); first != nil && c.leaving == nil {
			c.leaving = first.Value.(net.Conn)
			c.forget(c.leaving)
			c.leaving.Close() // its goroutine ends, and says so to note
		}
		c.change.Wait()
	}
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	c.open++
	return conn, nil
}

// Close implements net.Listener.
func (c *crowd) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.change.Broadcast()
	return c.Listener.Close()
}

// note is the server's ConnState.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
	switch state {
	case http.StateNew, http.StateIdle:
		c.of[conn] = c.waiting.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		c.open--
		if conn == c.leaving {
			c.leaving = nil
		}
	}
	c.change.Broadcast()
}

// forget takes a connection off those that wait.
func (c *crowd) forget(conn net.Conn) {
	if e := c.of[conn]; e != nil {
		c.waiting.Remove(e)
		delete(c.of, conn)
	}
}
