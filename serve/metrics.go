package serve

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"anneal/internal/buildinfo"
	"anneal/use"
)

// metrics holds the metrics of a server for Prometheus.
type metrics struct {
	registry       *prometheus.Registry
	requests       *prometheus.CounterVec
	read, made     prometheus.Counter
	guessed, right prometheus.Counter
	passes         prometheus.Counter
	first          prometheus.Histogram
	whole          prometheus.Histogram
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.005, 2, 16),
		})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anneal_serve_requests_total", Help: "Requests answered, by endpoint and status.",
		}, []string{"endpoint", "code"}),
		read:    counter("anneal_serve_prompt_tokens_total", "Tokens of prompts read."),
		made:    counter("anneal_serve_generated_tokens_total", "Tokens generated."),
		guessed: counter("anneal_serve_guessed_tokens_total", "Tokens guessed ahead and checked."),
		right: counter("anneal_serve_guessed_tokens_right_total",
			"Tokens guessed ahead that were right: generated without a pass of their own."),
		passes: counter("anneal_serve_passes_total", "Passes through the model."),
		first:  seconds("anneal_serve_first_token_seconds", "Time from a request to its first token."),
		whole:  seconds("anneal_serve_completion_seconds", "Time from a request to the end of its answer."),
	}
	m.registry.MustRegister(m.requests, m.read, m.made, m.guessed, m.right, m.passes, m.first, m.whole)
	return m
}

// watch adds the gauges of a loop.
func (m *metrics) watch(l *loop) {
	gauge := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	gauge("anneal_serve_sequences_running", "Sequences that are being continued.", func() float64 {
		running, _ := l.counts()
		return float64(running)
	})
	gauge("anneal_serve_sequences_waiting", "Sequences that wait for a slot.", func() float64 {
		_, waiting := l.counts()
		return float64(waiting)
	})
	_, cache := l.scheduler.Bytes()
	gauge("anneal_serve_cache_bytes", "Memory reserved for keys and values.", func() float64 { return float64(cache) })
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "anneal_build_info", Help: "Always 1; the version is a label.",
		ConstLabels: prometheus.Labels{"version": buildinfo.Version},
	}, func() float64 { return 1 }))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// request counts an answered request. Paths that are not endpoints share a label, so that clients cannot create many
// labels.
func (m *metrics) request(r *http.Request, status int) {
	endpoint := r.Pattern
	if endpoint == "" || endpoint == "/" {
		endpoint = "other"
	}
	m.requests.WithLabelValues(endpoint, strconv.Itoa(status)).Inc()
}

// pass counts the tokens of a pass.
func (m *metrics) pass(did use.Pass) {
	m.passes.Inc()
	m.read.Add(float64(did.Read))
	m.made.Add(float64(did.Made))
	m.guessed.Add(float64(did.Guessed))
	m.right.Add(float64(did.Right))
}

// complete records the times of an answered request.
func (m *metrics) complete(c *completion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first > 0 {
		m.first.Observe(c.first.Seconds())
	}
	if c.left == 0 {
		m.whole.Observe(time.Since(c.start).Seconds())
	}
}
