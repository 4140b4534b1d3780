package sinks

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// webhook sends each alert as a JSON object by POST. Slack and Mattermost show its text, Discord its content.
type webhook struct {
	url  string
	name string
	host string
	box  *outbox
}

const (
	webhookPieces   = 100
	webhookAttempts = 3 // for each alert
)

// webhookPause is the time before the second attempt; it doubles for each further one.
var webhookPause = time.Second

// message is the body of a POST to log.webhook.
type message struct {
	Text    string    `json:"text"`
	Content string    `json:"content"` // the same
	Event   string    `json:"event"`   // Alert.Kind
	Level   string    `json:"level"`
	Run     string    `json:"run"`
	Step    int       `json:"step"`
	Detail  string    `json:"detail,omitempty"`
	Host    string    `json:"host"`
	Time    time.Time `json:"time"`
}

func openWebhook(o Options) (sink, error) {
	w := &webhook{url: o.Log.Webhook, name: o.Name}
	w.host, _ = os.Hostname()
	w.box = newOutbox("log.webhook", webhookPieces, 0, o.Warn, w.send)
	return w, nil
}

// send makes the attempts for one alert.
func (w *webhook) send(ctx context.Context, body []byte) (int, error) {
	pause := webhookPause
	for n := 1; ; n++ {
		err := post(ctx, w.url, body, http.Header{})
		if err == nil || n == webhookAttempts || ctx.Err() != nil {
			return len(body), err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause *= 2
	}
}

func (w *webhook) step(Step) {}

func (w *webhook) alert(a Alert) {
	text := cmp.Or(alertText[a.Kind], a.Kind)
	if a.Text != "" {
		first, _, _ := strings.Cut(a.Text, "\n")
		text += ": " + first
	}
	m := message{
		Event: a.Kind, Level: a.Level(), Run: w.name, Step: a.Step, Detail: a.Text, Host: w.host,
		Time: time.Now().UTC().Truncate(time.Millisecond),
	}
	m.Text = "anneal " + w.name + ", step " + strconv.Itoa(a.Step) + ": " + text
	m.Content = m.Text
	if body, err := json.Marshal(m); err == nil {
		w.box.put(body)
	}
}

// alertText returns the text of an alert.
var alertText = map[string]string{
	"nan": "not a number", "spike": "spike", "stall": "stalled", "warning": "warning",
	"ended": "the run is complete", "stopped": "the run was stopped; its state is saved",
	"failed": "the run failed", "diverged": "the run diverged",
	"continued": "the run went back to this step by itself and continues",
}

func (w *webhook) saved(time.Time, error) {}

func (w *webhook) close() { w.box.close() }
