package config

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// Log configures where the metrics of a run go besides its directory.
type Log struct {
	Sinks            Sinks  `yaml:"sinks"`
	Every            int    `yaml:"every"`
	PrometheusListen string `yaml:"prometheus_listen"`
	TrackioURL       string `yaml:"trackio_url"`
	TrackioProject   string `yaml:"trackio_project"`
	Webhook          string `yaml:"webhook"`
}

// The names of the sinks.
const (
	TensorBoard = "tensorboard"
	Prometheus  = "prometheus"
	Trackio     = "trackio"
)

var sinkNames = []string{TensorBoard, Prometheus, Trackio}

// Sinks lists the places besides metrics.jsonl that receive a run's metrics. The text form is a list of their names,
// or none. A list is not changed once it is made.
type Sinks []string

// Has reports whether a sink is in the list.
func (s Sinks) Has(name string) bool { return slices.Contains(s, name) }

// MarshalText implements encoding.TextMarshaler.
func (s Sinks) MarshalText() ([]byte, error) { return namesText(s), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sinks) UnmarshalText(text []byte) (err error) {
	*s, err = readNames(text, sinkNames)
	return err
}

// log checks the addresses of sinks.
func (k *checker) log() {
	l := &k.c.Log
	k.between("log.every", l.Every, 1, 1<<40)
	if host, port, err := net.SplitHostPort(l.PrometheusListen); err != nil || port == "" {
		k.fault("log.prometheus_listen", "127.0.0.1:9464, or :9464 for all interfaces",
			"log.prometheus_listen = %q is not HOST:PORT", l.PrometheusListen)
	} else if ip := net.ParseIP(host); host != "" && host != "localhost" && ip == nil {
		k.fault("log.prometheus_listen", "127.0.0.1:"+port+", or :"+port+" for all interfaces",
			"log.prometheus_listen: %q is not an address of this machine", host)
	}
	k.url("log.trackio_url", l.TrackioURL, "http://127.0.0.1:7860")
	if l.Webhook != "" {
		k.url("log.webhook", l.Webhook, "https://hooks.example.com/…")
	}
	if l.TrackioProject == "" || strings.ContainsAny(l.TrackioProject, "/\\\n") {
		k.fault("log.trackio_project", "anneal", "log.trackio_project = %q is not a name", l.TrackioProject)
	}
}

func (k *checker) url(key, text, try string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		k.fault(key, try, "%s is not an http or https URL", key) // the text may hold a secret
	}
}
