package sinks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anneal/config"
	"anneal/tfevents"
	"anneal/train"
)

// tensorBoard writes an event file into the directory tensorboard of a run: one file for each process that trains it.
// `tensorboard --logdir` finds it in the run, and in the directory of all runs.
type tensorBoard struct {
	file *os.File
	box  *outbox
}

// eventPieces is the number of records that may wait for a disk that stalls.
const eventPieces = 10_000

func openTensorBoard(o Options) (sink, error) {
	dir, now := filepath.Join(o.Dir, "tensorboard"), time.Now()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, keyError("log.sinks", "log.sinks without tensorboard", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, keyError("log.sinks", "log.sinks without tensorboard", err)
	}
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	path := filepath.Join(dir, tfevents.FileName(now, files))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, keyError("log.sinks", "log.sinks without tensorboard", err)
	}
	t := &tensorBoard{file: f}
	t.box = newOutbox(config.TensorBoard, eventPieces, time.Second, o.Warn,
		func(_ context.Context, p []byte) (int, error) { return f.Write(p) })
	t.box.put(tfevents.Version(now))
	t.box.put(tfevents.Start(now, int64(o.Step)+1))
	if o.Step == 0 {
		t.box.put(tfevents.Summary(now, 0, tfevents.Text("config", "```yaml\n"+o.Config+"```\n")))
	}
	return t, nil
}

func (t *tensorBoard) step(s Step) {
	if !s.due {
		return
	}
	list := scalars(values(s))
	if layers := s.GradNorms.Layers; len(layers) > 0 {
		norms := make([]float64, len(layers))
		for i, x := range layers {
			norms[i] = float64(x)
		}
		list = append(list, tfevents.Histogram("grad_norm/layers", norms))
	}
	t.box.put(tfevents.Summary(time.Now(), int64(s.Step), list...))
}

func (t *tensorBoard) evaluated(step int, e train.Evaluation) {
	t.box.put(tfevents.Summary(time.Now(), int64(step), scalars(evaluation(e))...))
}

func scalars(values []value) (list []tfevents.Value) {
	for _, v := range values {
		list = append(list, tfevents.Scalar(v.tag, v.x))
	}
	return list
}

func (t *tensorBoard) alert(a Alert) {
	text := fmt.Sprintf("**%s** %s", a.Kind, a.Text)
	t.box.put(tfevents.Summary(time.Now(), int64(a.Step), tfevents.Text("alerts", text)))
}

// wrote uses a tag for each prompt, so that the page shows how its text changes over the steps.
func (t *tensorBoard) wrote(step int, texts []Text) {
	var list []tfevents.Value
	for i, x := range texts {
		list = append(list, tfevents.Text(fmt.Sprintf("samples/%d", i), indented(x.Prompt+x.Text)))
	}
	t.box.put(tfevents.Summary(time.Now(), int64(step), list...))
}

// indented writes a text as indented code in Markdown, which no content of the text can end.
func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n" }

func (t *tensorBoard) saved(time.Time, error) {}

func (t *tensorBoard) close() {
	if t.box.close() {
		t.file.Close()
	}
}
