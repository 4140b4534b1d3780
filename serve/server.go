package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"anneal/internal/webguard"
	"anneal/run"
	"anneal/use"
)

// Options says how to serve. Zero values are replaced by the defaults; negative ones are refused.
type Options struct {
	Model     string        // name of the model; that of the run's directory
	Sequences int           // largest number continued at a time; 8
	Requests  int           // largest number answered or waiting at a time; 64
	Timeout   time.Duration // of a request; 10 minutes
	Drain     time.Duration // how long current requests may take after a shutdown begins; 30 seconds
	Key       string        // key that requests must have; "" for none
	Hosts     []string      // names of this server in the Host header, besides localhost and addresses
	OneByOne  bool          // do not guess tokens: the same answers, mostly slower
}

// Limits that have no option.
const (
	maxBody        = 1 << 20 // bytes
	maxHeader      = 16 << 10
	headerSlop     = 4 << 10 // that net/http reads beyond its limit
	maxConnections = 512
	maxChoices     = 128     // of a request
	maxLogprobs    = 1 << 20 // of a request
	maxTexts       = 4       // largest number tokenized at a time
	headerTime     = 10 * time.Second
	bodyTime       = 30 * time.Second
	idleTime       = time.Minute
	writeTime      = 30 * time.Second // for a client to receive a ready answer
	partingTime    = 2 * time.Second  // for all clients whose requests take longer than the drain
)

// ErrUnfinished means that requests took longer than Options.Drain. They were answered with an error.
var ErrUnfinished = errors.New("not all requests were finished")

// A Server answers requests for the completions of a model.
type Server struct {
	r        *use.Trained
	o        Options
	loop     *loop
	metrics  *metrics
	handler  http.Handler
	requests chan struct{} // holds a token for each current request for completions
	texts    chan struct{} // holds a token for each text being tokenized or detokenized
	draining atomic.Bool
	start    time.Time
}

// New returns a server of a model, which nothing else may use until Close. Close ends the server, but does not close
// the model.
func New(r *use.Trained, o Options) (*Server, error) {
	if r == nil {
		return nil, errors.New("there is no model to serve\n  open one with use.Open")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Model = cmp.Or(o.Model, run.Name(r.Path()))
	o.Sequences, o.Requests = cmp.Or(o.Sequences, 8), cmp.Or(o.Requests, 64)
	o.Timeout, o.Drain = cmp.Or(o.Timeout, 10*time.Minute), cmp.Or(o.Drain, 30*time.Second)
	scheduler, err := r.NewScheduler(o.Sequences)
	if err != nil {
		return nil, err
	}
	s := &Server{r: r, o: o, start: time.Now()}
	s.requests, s.texts = make(chan struct{}, o.Requests), make(chan struct{}, maxTexts)
	s.metrics = newMetrics()
	s.loop = newLoop(scheduler, s.metrics)
	s.metrics.watch(s.loop)
	s.handler = s.guard(s.routes())
	return s, nil
}

// check returns an error about negative options.
func (o Options) check() error {
	switch {
	case o.Sequences < 0 || o.Requests < 0:
		return fmt.Errorf("a server cannot have %d sequences and %d requests at a time\n  try 0 for the defaults",
			o.Sequences, o.Requests)
	case o.Timeout < 0 || o.Drain < 0:
		return fmt.Errorf("a server cannot have a timeout of %v and a drain of %v\n  try 0 for the defaults",
			o.Timeout, o.Drain)
	}
	return nil
}

// Close frees the memory beside the model's. Requests that are left, and those that come later, are answered with an
// error.
func (s *Server) Close() {
	s.draining.Store(true)
	s.loop.close()
}

// Bytes returns the memory besides the model's, and how much of it is keys and values.
func (s *Server) Bytes() (all, cache int) { return s.loop.scheduler.Bytes() }

// Handler answers the endpoints, for an [http.Server] of the caller. Shut that down before Close; it needs a
// ReadHeaderTimeout of its own.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", s.completions)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{model...}", s.oneModel)
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("POST /detokenize", s.detokenize)
	mux.HandleFunc("GET /tokenizer_info", s.tokenizerInfo)
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, notFound("this server continues texts, it does not chat: write the conversation as one prompt, in the "+
			"form that the model was trained on, and send it to POST /v1/completions"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, pattern := mux.Handler(other); pattern != "/" {
				w.Header().Set("Allow", method)
				fail(w, &apiError{http.StatusMethodNotAllowed, "invalid_request_error", "", "method_not_allowed",
					fmt.Sprintf("%s is asked by %s, not %s", r.URL.Path, method, r.Method)})
				return
			}
		}
		fail(w, notFound("there is no %s %s", r.Method, r.URL.Path))
	})
	return mux
}

// Serve answers requests from l until ctx ends. Then it accepts no more and waits for the current ones; if they take
// longer than Options.Drain, they are answered with an error, and so is the caller, by ErrUnfinished.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader - headerSlop,
	}
	failed := make(chan error, 1)
	go func() { failed <- webguard.Serve(server, l, maxConnections) }()
	select {
	case err := <-failed:
		return err
	case err := <-s.loop.broken:
		server.Close()
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	patience, cancel := context.WithTimeout(context.Background(), s.o.Drain)
	defer cancel()
	shut := make(chan error, 1)
	go func() { shut <- server.Shutdown(patience) }()
	var err error
	select {
	case err = <-shut:
	case err = <-s.loop.broken:
		server.Close()
		return err
	}
	select {
	case err := <-s.loop.broken: // the loop failed while the last requests were answered
		return err
	default:
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return s.part(server)
	}
	return err
}

// part answers the requests that are left with an error, and closes the connections of clients that do not take it.
func (s *Server) part(server *http.Server) error {
	left := len(s.requests)
	s.loop.end()
	last, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	if server.Shutdown(last) != nil {
		server.Close()
	}
	if left == 0 { // only clients that were slow to receive an answer
		return nil
	}
	return fmt.Errorf("%w: %d took longer than %v, and were answered with an error", ErrUnfinished, left, s.o.Drain)
}

// take takes a place for a request. If none is free, it answers with an error, and release is nil.
func take(w http.ResponseWriter, places chan struct{}) (release func()) {
	select {
	case places <- struct{}{}:
		return func() { <-places }
	default:
		fail(w, &apiError{http.StatusTooManyRequests, "rate_limit_error", "", "rate_limit_exceeded",
			"the server has as many requests in hand as it takes; try again soon"})
		return nil
	}
}

// health answers 200 while the server takes requests and its model works.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.loop.failed() {
		fail(w, &apiError{http.StatusServiceUnavailable, "server_error", "", "", "the model's device has failed"})
		return
	}
	if s.draining.Load() {
		fail(w, shuttingDown())
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "ok"})
}

// models lists the one model.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": []any{s.model()}})
}

// oneModel describes the model that the path names.
func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) {
	if e := s.o.knows(r.PathValue("model")); e != nil {
		fail(w, e)
		return
	}
	reply(w, http.StatusOK, s.model())
}

func (s *Server) model() map[string]any {
	return map[string]any{
		"id": s.o.Model, "object": "model", "created": s.start.Unix(), "owned_by": "anneal",
		"max_model_len": s.r.Context(),
	}
}

// knows returns an error unless the name is that of this model.
func (o *Options) knows(name string) *apiError {
	if name == o.Model {
		return nil
	}
	e := notFound("there is no model %q; this server has %q", name, o.Model)
	e.param, e.code = "model", "model_not_found"
	return e
}
