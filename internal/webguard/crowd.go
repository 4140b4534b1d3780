package webguard

import (
	"container/list"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// Serve answers on l with at most n connections at a time. A further connection replaces the one that has waited
// longest for its client: for a complete request header, or for the next byte of a request's body. So silent and slow
// clients keep nobody out, however many there are. While all n connections have a complete request, the next one waits
// until one of them ends, and further ones wait in the queue of the system. server.ConnState and server.ConnContext
// must be nil.
func Serve(server *http.Server, l net.Listener, n int) error {
	c := &crowd{Listener: l, most: n, waiting: list.New(), of: map[net.Conn]*list.Element{}}
	c.change.L = &c.mu
	server.ConnState = c.note
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, memberKey{}, conn)
	}
	server.Handler = watchBodies(server.Handler)
	return server.Serve(c)
}

// A crowd is the connections of a server.
type crowd struct {
	net.Listener
	most int

	mu      sync.Mutex
	change  sync.Cond
	open    int
	leaving net.Conn // the connection that is being replaced; nil if none
	closed  bool
	waiting *list.List                 // connections that wait for their clients, longest wait first
	of      map[net.Conn]*list.Element // their elements in waiting
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
			c.leaving.Close() // its goroutine ends, and note learns of it
		}
		c.change.Wait()
	}
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	c.open++
	return &member{Conn: conn, crowd: c}, nil
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

// forget removes a connection from waiting.
func (c *crowd) forget(conn net.Conn) {
	if e := c.of[conn]; e != nil {
		c.waiting.Remove(e)
		delete(c.of, conn)
	}
}

// A member is a connection of a crowd. While a body arrives, the member counts as waiting during each read.
type member struct {
	net.Conn
	crowd *crowd
	body  bool // the body of the current request is not complete; guarded by crowd.mu
}

type memberKey struct{} // the key of a request's member in its context

// Read implements net.Conn.
func (m *member) Read(p []byte) (int, error) {
	if m.wait() {
		defer m.heard()
	}
	return m.Conn.Read(p)
}

// wait appends a member to waiting if a body is arriving.
func (m *member) wait() bool {
	c := m.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if !m.body || c.leaving == net.Conn(m) {
		return false
	}
	c.of[m] = c.waiting.PushBack(net.Conn(m))
	c.change.Broadcast()
	return true
}

// heard removes a member from waiting.
func (m *member) heard() {
	m.crowd.mu.Lock()
	defer m.crowd.mu.Unlock()
	m.crowd.forget(m)
}

// expect sets whether a body is arriving. At the end of a body net/http already reads to notice if the client
// disconnects. That read does not count as waiting, although it may have begun before the end is known here.
func (m *member) expect(body bool) {
	m.crowd.mu.Lock()
	defer m.crowd.mu.Unlock()
	if m.body = body; !body {
		m.crowd.forget(m)
	}
}

// watchBodies tells the member of each request when its body begins and ends. net/http reads the rest of a body that a
// handler leaves, except of its own bodies those whose client waits for 100 Continue or which are long. Of others it
// would wait for the rest before it answers. So the request gets its own body back.
func watchBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := r.Context().Value(memberKey{}).(*member)
		if m.expect(r.ContentLength != 0); r.ContentLength != 0 {
			own := r.Body
			r.Body = &body{own, m}
			defer func() { r.Body = own }()
		}
		next.ServeHTTP(w, r)
	})
}

// A body is the body of a request.
type body struct {
	io.ReadCloser
	of *member
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.of.expect(false)
	}
	return n, err
}
