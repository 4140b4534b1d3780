package sinks

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"anneal/train"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics returns the names of the metrics that a run answers with, in order.
func metrics(t *testing.T) (names []string) {
	t.Helper()
	r := prometheus.NewRegistry()
	p := &prometheusSink{kept: &Kept{}}
	p.register(r, Options{Memory: map[string]int64{"": 0}})
	p.step(Step{Event: train.Event{LossScale: 1, RSSBytes: 1}})
	p.saved(time.Now(), nil)
	p.val.WithLabelValues("all")
	p.bits.WithLabelValues("all")
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "anneal_") {
			names = append(names, f.GetName())
		}
	}
	return names
}

// A run exports every metric that the Prometheus rules name, and the manual lists them.
func TestPrometheusRulesNameMetrics(t *testing.T) {
	known := metrics(t)
	rules, err := os.ReadFile("../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`anneal_\w+`).FindAllString(string(rules), -1) {
		if !slices.Contains(known, name) {
			t.Errorf("no run has the metric %s, but %v", name, known)
		}
	}
	doc, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known {
		if !strings.Contains(string(doc), "`"+name) {
			t.Errorf("docs/commands.md does not list %s", name)
		}
	}
}
