package dash

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"anneal/internal/fileio"
)

//go:embed page
var page embed.FS

var (
	styles = embedded("page.css")
	body   = embedded("page.html")
)

// scripts are the parts of the page's script, in the order in which they build on each other.
var scripts = []string{"format.js", "data.js", "chart.js", "heat.js", "panels.js", "main.js"}

func embedded(name string) string {
	text, err := page.ReadFile("page/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// script is the page's whole script.
func script() string {
	var b strings.Builder
	for _, name := range scripts {
		b.WriteString(embedded(name))
	}
	return b.String()
}

// livePage is the page that asks a server for its data.
func livePage() string {
	return fill(`<link rel="stylesheet" href="page.css">`, `<script src="page.js"></script>`)
}

// fill inserts the parts in which the two forms of the page differ.
func fill(head, tail string) string {
	return strings.NewReplacer("<!-- head -->", head, "<!-- tail -->", tail).Replace(body)
}

// record holds the data that a report contains instead of asking a server.
type record struct {
	View   View              `json:"view"`
	Curves []json.RawMessage `json:"curves"`
}

// WriteReport writes the page with the data of all runs as one file, which needs neither a server nor a network.
func (w *Watch) WriteReport(path string) error {
	text, err := w.report(time.Now())
	if err != nil {
		return err
	}
	return fileio.Write(path, func(out io.Writer) error {
		_, err := io.WriteString(out, text)
		return err
	})
}

func (w *Watch) report(now time.Time) (string, error) {
	r := record{View: w.View(now)}
	for _, run := range w.runs {
		r.Curves = append(r.Curves, run.points.curves(known{}))
	}
	data, err := json.Marshal(r) // which writes < as \u003c, so that no text of a run ends the element
	if err != nil {
		return "", err
	}
	code := script()
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data:; base-uri 'none'; "+
		"form-action 'none'", hashOf(code), hashOf(styles))
	return fill(
		`<meta http-equiv="Content-Security-Policy" content="`+policy+`"><style>`+styles+`</style>`,
		`<script type="application/json" id="record">`+string(data)+`</script><script>`+code+`</script>`), nil
}

// hashOf returns the hash that identifies a script or style sheet in a content security policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
