package sinks

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"anneal/config"
	"anneal/train"
)

// trackio sends metrics and alerts to a trackio server (github.com/gradio-app/trackio), in batches: POST
// /api/bulk_log and /api/bulk_alert, with the header X-Trackio-Write-Token. The token is in the environment,
// TRACKIO_WRITE_TOKEN, or in the query of log.trackio_url, as trackio prints it. Every entry has an id, so that a batch
// that is sent twice counts once.
type trackio struct {
	base, token string
	project     string
	run, id     string
	session     string // of this process, in the ids of entries
	config      map[string]string
	box         *outbox

	batch []trackioLog
	since time.Time // of the last batch
}

const (
	trackioPieces = 1000
	trackioBatch  = 200 // most entries of a batch
	trackioEvery  = time.Second
	trackioRetry  = 5 * time.Second
)

type trackioLog struct {
	Project string            `json:"project"`
	Run     string            `json:"run"`
	RunID   string            `json:"run_id,omitempty"`
	Metrics map[string]any    `json:"metrics"`
	Step    int               `json:"step"`
	Config  map[string]string `json:"config,omitempty"`
	LogID   string            `json:"log_id"`
}

type trackioAlert struct {
	Project   string `json:"project"`
	Run       string `json:"run"`
	RunID     string `json:"run_id,omitempty"`
	Title     string `json:"title"`
	Text      string `json:"text"`
	Level     string `json:"level"`
	Step      int    `json:"step"`
	Timestamp string `json:"timestamp"`
	AlertID   string `json:"alert_id"`
}

// trackioCall is a piece in the outbox: a batch and its endpoint.
type trackioCall struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

func openTrackio(o Options) (sink, error) {
	u, err := url.Parse(o.Log.TrackioURL)
	if err != nil {
		return nil, keyError("log.trackio_url", "http://127.0.0.1:7860", err)
	}
	t := &trackio{
		token: os.Getenv("TRACKIO_WRITE_TOKEN"), project: o.Log.TrackioProject, run: o.Name, id: o.ID,
		session: fmt.Sprint(time.Now().UnixNano()), config: o.Values,
	}
	if q := u.Query().Get("write_token"); q != "" {
		t.token = q
	}
	u.RawQuery, u.Fragment = "", ""
	t.base = strings.TrimRight(u.String(), "/")
	t.box = newOutbox(config.Trackio, trackioPieces, trackioRetry, o.Warn, t.send)
	return t, nil
}

// send makes one call.
func (t *trackio) send(ctx context.Context, piece []byte) (int, error) {
	var c trackioCall
	if err := json.Unmarshal(piece, &c); err != nil {
		return len(piece), nil // put wrote it
	}
	header := http.Header{}
	if t.token != "" {
		header.Set("X-Trackio-Write-Token", t.token)
	}
	err := post(ctx, t.base+c.Path, c.Body, header)
	if final(err) {
		t.box.refused(err)
		return len(piece), nil
	}
	if err != nil {
		return 0, err
	}
	return len(piece), nil
}

func (t *trackio) put(path, field string, list any) {
	body, err := json.Marshal(map[string]any{field: list, "hf_token": nil})
	if err == nil {
		body, err = json.Marshal(trackioCall{path, body})
	}
	if err == nil {
		t.box.put(body)
	}
}

func (t *trackio) step(s Step) {
	if s.due {
		t.log(s.Step, values(s))
	}
}

func (t *trackio) evaluated(step int, e train.Evaluation) { t.log(step, evaluation(e)) }

// log adds an entry, the only one of its step in this process.
func (t *trackio) log(step int, values []value) {
	l := trackioLog{
		Project: t.project, Run: t.run, RunID: t.id, Step: step, Metrics: map[string]any{}, Config: t.config,
		LogID: fmt.Sprint(t.session, "-", step),
	}
	t.config = nil // only the first entry has it
	for _, v := range values {
		l.Metrics[v.tag] = trackioNumber(v.x)
	}
	t.batch = append(t.batch, l)
	if now := time.Now(); now.Sub(t.since) >= trackioEvery || len(t.batch) >= trackioBatch {
		t.flush(now)
	}
}

// trackioNumber converts a number for trackio: JSON has no NaN.
func trackioNumber(x float64) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return x
}

func (t *trackio) flush(now time.Time) {
	if len(t.batch) > 0 {
		t.put("/api/bulk_log", "logs", t.batch)
	}
	t.batch, t.since = nil, now
}

func (t *trackio) alert(a Alert) {
	now := time.Now().UTC()
	t.put("/api/bulk_alert", "alerts", []trackioAlert{{
		Project: t.project, Run: t.run, RunID: t.id, Title: a.Kind, Text: a.Text, Level: a.Level(), Step: a.Step,
		Timestamp: now.Format(time.RFC3339Nano), AlertID: fmt.Sprint(t.session, "-", a.Kind, "-", now.UnixNano()),
	}})
}

func (t *trackio) saved(time.Time, error) {}

func (t *trackio) close() {
	t.flush(time.Now())
	t.box.close()
}
