package dash

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"anneal/internal/webguard"
)

// A Server shows runs to browsers. It answers GET and HEAD only and changes nothing.
type Server struct {
	Watch *Watch
	// Token is what a client must send to get data: Authorization: Bearer TOKEN. It is "" on loopback, which other
	// machines cannot reach.
	Token string
	Hosts []string // names of this machine besides localhost; a request for another name is refused
}

const (
	maxConnections = 64
	maxParts       = 2 // read at a time
	maxHeader      = 16 << 10
)

// policy lets the page load only from this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Serve follows the runs and answers on a listener until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.Watch.Follow(ctx)
	server := &http.Server{
		Handler: s.Handler(), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute,
	}
	context.AfterFunc(ctx, func() { server.Close() })
	err := webguard.Serve(server, l, maxConnections)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Handler answers requests: the page at /, and JSON under /api.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", file("text/html; charset=utf-8", livePage()))
	mux.HandleFunc("GET /page.css", file("text/css; charset=utf-8", styles))
	mux.HandleFunc("GET /page.js", file("text/javascript; charset=utf-8", script()))
	mux.HandleFunc("GET /api/view", s.view)
	mux.HandleFunc("GET /api/curves/{run}", s.curves)
	parts := make(chan struct{}, maxParts)
	mux.HandleFunc("GET /api/part/{run}", func(w http.ResponseWriter, r *http.Request) { s.part(w, r, parts) })
	return s.guard(mux)
}

// guard refuses requests that no page of this server makes.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "this server only answers GET and HEAD", http.StatusMethodNotAllowed)
		case !webguard.Names(r.Host, s.Hosts):
			http.Error(w, "this server does not answer for this name", http.StatusMisdirectedRequest)
		case s.Token != "" && strings.HasPrefix(r.URL.Path, "/api/") && !webguard.Shows(r, s.Token):
			http.Error(w, "open the address with the token that `anneal watch` printed", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func file(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Write([]byte(text))
	}
}

func answer(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

func (s *Server) view(w http.ResponseWriter, _ *http.Request) {
	text, err := json.Marshal(s.Watch.View(time.Now()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, text)
}

// run finds the run that a request names by its number.
func (s *Server) run(w http.ResponseWriter, r *http.Request) (*watched, bool) {
	i, err := strconv.Atoi(r.PathValue("run"))
	if err != nil || i < 0 || i >= len(s.Watch.runs) {
		http.Error(w, "there is no such run", http.StatusNotFound)
		return nil, false
	}
	return s.Watch.runs[i], true
}

// curves answers with the buckets that a client lacks: ?generation=G&width=W&from=N.
func (s *Server) curves(w http.ResponseWriter, r *http.Request) {
	run, ok := s.run(w, r)
	if !ok {
		return
	}
	var has known
	for name, to := range map[string]*int{"generation": &has.generation, "width": &has.width, "from": &has.from} {
		*to, _ = strconv.Atoi(r.FormValue(name)) // 0 if invalid: the client then gets all buckets
	}
	answer(w, run.points.curves(has))
}

// part answers with the steps of a stretch, as finely as possible: ?from=STEP&to=STEP.
func (s *Server) part(w http.ResponseWriter, r *http.Request, slots chan struct{}) {
	run, ok := s.run(w, r)
	if !ok {
		return
	}
	from, err := strconv.Atoi(r.FormValue("from"))
	to, err2 := strconv.Atoi(r.FormValue("to"))
	if err != nil || err2 != nil || from < 0 || to < from {
		http.Error(w, "from and to are steps", http.StatusBadRequest)
		return
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-r.Context().Done():
		return
	}
	text, err := run.points.part(r.Context(), from, to)
	if err != nil {
		http.Error(w, "the metrics cannot be read", http.StatusInternalServerError)
		return
	}
	answer(w, text)
}
