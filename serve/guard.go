package serve

import (
	"net/http"
	"time"

	"anneal/internal/webguard"
)

// guard protects all endpoints. The Host header must name this server; otherwise a page of another site whose name now
// resolves to this address (DNS rebinding) could read its answers. So must the Origin header, which browsers send with
// a page's POST requests. If there is a key, all endpoints except /health need it.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// net/http reads the rest of a body after the handler, without a time limit
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		head := w.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		counted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() { s.metrics.request(r, counted.status) }()
		if e := s.refusal(r); e != nil {
			fail(counted, e)
			return
		}
		next.ServeHTTP(counted, r)
	})
}

// refusal returns why a request is refused; nil if it is accepted.
func (s *Server) refusal(r *http.Request) *apiError {
	if !webguard.Names(r.Host, s.o.Hosts) {
		return &apiError{http.StatusForbidden, "permission_error", "", "host",
			"the header Host does not name this server; --allow-host adds a name"}
	}
	if !webguard.SameOrigin(r, s.o.Hosts) {
		return &apiError{http.StatusForbidden, "permission_error", "", "origin",
			"requests of web pages from other servers are not answered"}
	}
	if s.o.Key != "" && r.URL.Path != "/health" && !webguard.Shows(r, s.o.Key) {
		return &apiError{http.StatusUnauthorized, "authentication_error", "", "invalid_api_key",
			"the server's key is needed, as `Authorization: Bearer KEY`"}
	}
	return nil
}

// statusWriter records the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// note makes metrics count an answer under another status than the one that it began with.
func note(w http.ResponseWriter, status int) {
	if counted, ok := w.(*statusWriter); ok {
		counted.status = status
	}
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
