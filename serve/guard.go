package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard stands before all endpoints. The header Host must name this server, or a page from elsewhere whose name now
// leads here (DNS rebinding) could read its answers; so must Origin, which browsers send with what a page posts.
// All but /health needs the key, if there is one.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// refusal says why a request is not let in; nil if it is.
func (s *Server) refusal(r *http.Request) *apiError {
	if !s.allowed(r.Host) {
		return &apiError{http.StatusForbidden, "permission_error", "", "host",
			"the header Host does not name this server; --allow-host adds a name"}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || !s.allowed(u.Host) {
			return &apiError{http.StatusForbidden, "permission_error", "", "origin",
				"requests of web pages from other servers are not answered"}
		}
	}
	if s.o.Key != "" && r.URL.Path != "/health" && !s.knows(r.Header.Get("Authorization")) {
		return &apiError{http.StatusUnauthorized, "authentication_error", "", "invalid_api_key",
			"the server's key is needed, as `Authorization: Bearer KEY`"}
	}
	return nil
}

// allowed reports whether a host, with or without a port, is an address, localhost or one of the names of this server.
func (s *Server) allowed(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(s.o.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// knows reports whether a header has the key, in a time that does not depend on how much of it is right.
func (s *Server) knows(header string) bool {
	given, bearer := strings.CutPrefix(header, "Bearer ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.o.Key))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && bearer
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
