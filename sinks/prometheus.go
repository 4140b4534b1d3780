package sinks

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"anneal/internal/buildinfo"
	"anneal/internal/webguard"
	"anneal/train"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// prometheusSink answers at /metrics with the last step. Slow scrapers, or many of them, reach the limits of the
// server and do not slow the run.
type prometheusSink struct {
	server *http.Server

	at, steps, loss, gradNorm, lr, rate, peak, scale, eta, resident, goodput *lateGauge

	tokens, flops, stall prometheus.Counter
	saves, failures      prometheus.Counter
	lastSave             *lateGauge
	duration             prometheus.Histogram
	phases               *prometheus.CounterVec
	skipped              *prometheus.CounterVec
	val, bits            *prometheus.GaugeVec

	before  int64 // tokens up to the previous step
	begun   time.Time
	reached int // steps up to this one were made before
	kept    *Kept
}

const scrapeConnections = 16 // at a time; none has more than one request in hand

func openPrometheus(o Options) (sink, error) {
	const key = "log.prometheus_listen"
	listener, err := net.Listen("tcp", o.Log.PrometheusListen)
	if err != nil {
		return nil, keyError(key, "another port: "+key+"=127.0.0.1:0 takes a free one", err)
	}
	registry := prometheus.NewRegistry()
	p := &prometheusSink{before: o.Tokens, begun: o.Begun, reached: o.Reached, kept: cmp.Or(o.Kept, &Kept{})}
	p.kept.back(o.Step)
	p.register(registry, o)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Timeout: 5 * time.Second}))
	var handler http.Handler = mux
	if listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		handler = byName(mux)
	}
	p.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 8 << 10,
	}
	go webguard.Serve(p.server, listener, scrapeConnections)
	if _, port, _ := net.SplitHostPort(o.Log.PrometheusListen); port == "0" {
		o.Warn(fmt.Sprintf("%s: metrics are at http://%s/metrics", key, listener.Addr()))
	}
	return p, nil
}

// byName answers only requests that name this machine. It guards servers on loopback: a page of another site could
// otherwise read metrics through a name of its own that leads here. On other addresses, scrapers may use names that
// this machine does not know.
func byName(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !webguard.Names(r.Host, nil) {
			http.Error(w, "this server does not answer for this name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// A lateGauge appears with its first value: a 0 for an unknown value could set off an alert.
type lateGauge struct {
	gauge    prometheus.Gauge
	registry *prometheus.Registry
	known    bool
}

// Set must not be called concurrently.
func (g *lateGauge) Set(x float64) {
	if math.IsNaN(x) && !g.known {
		return
	}
	g.gauge.Set(x)
	if !g.known {
		g.registry.MustRegister(g.gauge)
		g.known = true
	}
}

func (p *prometheusSink) register(r *prometheus.Registry, o Options) {
	gauge := func(name, help string) *lateGauge {
		return &lateGauge{gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}), registry: r}
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	gauges := func(name, help, label string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
		r.MustRegister(g)
		return g
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		r.MustRegister(c)
		return c
	}
	info := func(name, help string, labels prometheus.Labels) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
		g.Set(1)
		r.MustRegister(g)
	}
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info("anneal_build_info", "The version of anneal.", prometheus.Labels{"version": buildinfo.Version})
	info("anneal_run_info", "The run and its model.", prometheus.Labels{
		"run": label(o.Name), "id": label(o.ID), "family": o.Family, "parameters": fmt.Sprint(o.Parameters),
	})
	memory := gauges("anneal_memory_bytes", "Memory that the run holds, by what it is for.", "kind")
	for kind, bytes := range o.Memory {
		memory.WithLabelValues(kind).Set(float64(bytes))
	}
	p.at = gauge("anneal_step", "Steps made.")
	p.at.Set(float64(o.Step))
	p.steps = gauge("anneal_steps", "Steps of the whole run.")
	p.tokens = counter("anneal_tokens_total", "Tokens trained on by this process.")
	p.flops = counter("anneal_flops_total", "Floating point operations of this process, forward and backward.")
	p.loss = gauge("anneal_train_loss", "Nats per token of the last batch.")
	p.val = gauges("anneal_val_loss", "Nats per token of held-out text, at the last evaluation.", "set")
	p.bits = gauges("anneal_val_bits_per_byte", "Bits per byte of held-out text, at the last evaluation.", "set")
	p.gradNorm = gauge("anneal_grad_norm", "Norm of the gradient, before clipping.")
	p.lr = gauge("anneal_learning_rate", "Learning rate of the last step.")
	p.rate = gauge("anneal_tokens_per_second", "Tokens per second of wall time, over the last seconds.")
	p.peak = gauge("anneal_mfu_ratio", "Share of the measured peak of matrix products.")
	p.scale = gauge("anneal_loss_scale", "Loss scale of precision fp16.")
	p.goodput = gauge("anneal_goodput_ratio", "Share of the time since this process started that went into steps "+
		"which brought the run on: no waits for data, skipped updates, or steps made again.")
	p.eta = gauge("anneal_eta_seconds", "Predicted time to the end of the run.")
	p.resident = gauge("anneal_resident_memory_bytes", "Resident memory of the process.")
	p.duration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "anneal_step_duration_seconds", Help: "Wall time of a step.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 18),
	})
	r.MustRegister(p.duration)
	p.phases = counters("anneal_phase_seconds_total", "Where the time of steps went.", "phase")
	for phase := range train.Phases {
		p.phases.WithLabelValues(phase.String())
	}
	p.skipped = counters("anneal_skipped_steps_total", "Updates that were not applied.", "reason")
	for _, reason := range []string{"nan", "spike", "overflow", "empty"} {
		p.skipped.WithLabelValues(reason)
	}
	p.stall = counter("anneal_checkpoint_stall_seconds_total", "Time that training stood still for checkpoints.")
	p.saves = counter("anneal_checkpoints_total", "Checkpoints saved by this process.")
	p.failures = counter("anneal_checkpoint_failures_total", "Checkpoints that could not be saved.")
	restarts := counter("anneal_restarts_total", "Processes that trained this run before.")
	restarts.Add(float64(o.Restarts))
	checkpoint := gauge("anneal_checkpoint_bytes", "Bytes of a checkpoint's tensors.")
	checkpoint.Set(float64(o.Checkpoint))
	p.lastSave = gauge("anneal_checkpoint_last_success_timestamp_seconds", "When the last checkpoint was complete.")
}

func (p *prometheusSink) step(s Step) {
	p.at.Set(float64(s.Step))
	p.steps.Set(float64(s.Steps))
	p.tokens.Add(float64(max(s.Tokens-p.before, 0)))
	p.before = s.Tokens
	if s.FLOPs > 0 {
		p.flops.Add(s.FLOPs)
	}
	p.loss.Set(s.Loss)
	p.gradNorm.Set(s.GradNorm)
	p.lr.Set(s.LR)
	p.rate.Set(s.TokensPerSecond)
	p.peak.Set(s.FractionOfPeak)
	if s.LossScale > 0 {
		p.scale.Set(s.LossScale)
	}
	if !s.Skipped && s.Step > p.reached {
		p.kept.add(s.Step, s.Took-s.Phases[train.Reading])
	}
	p.goodput.Set(p.kept.time.Seconds() / time.Since(p.begun).Seconds())
	p.eta.Set(s.ETA.Seconds())
	if s.RSSBytes > 0 { // not every system reports it
		p.resident.Set(float64(s.RSSBytes))
	}
	p.duration.Observe(s.Took.Seconds())
	for phase, spent := range s.Phases {
		p.phases.WithLabelValues(train.Phase(phase).String()).Add(max(spent.Seconds(), 0))
	}
	if reason := skipKind(s.Event); reason != "" {
		p.skipped.WithLabelValues(reason).Inc()
	}
	if s.SaveSeconds > 0 {
		p.stall.Add(s.SaveSeconds)
	}
	if s.Evaluated() {
		p.evaluated(s.Step, s.Evaluation)
	}
}

func (p *prometheusSink) evaluated(_ int, e train.Evaluation) {
	p.val.WithLabelValues("all").Set(e.ValLoss)
	p.bits.WithLabelValues("all").Set(e.ValBitsPerByte)
	for _, r := range e.ValSources {
		set := label(r.Name)
		if set == "all" { // "all" would be ambiguous: it names the whole
			set = "all (source)"
		}
		p.val.WithLabelValues(set).Set(float64(r.Loss))
		p.bits.WithLabelValues(set).Set(float64(r.BitsPerByte))
	}
}

// label converts a name to the value of a label, which must be UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func (p *prometheusSink) alert(Alert) {}

func (p *prometheusSink) saved(now time.Time, err error) {
	if err != nil {
		p.failures.Inc()
		return
	}
	p.saves.Inc()
	p.lastSave.Set(float64(now.UnixNano()) / 1e9)
}

func (p *prometheusSink) close() { p.server.Close() }
