package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"anneal/config"
	"anneal/internal/fileio"
	"anneal/model"
	"anneal/sinks"
	"anneal/train"
)

// Samples are texts that the model wrote after a step. They depend only on the weights, so a repeated step writes the
// same samples.
type Samples struct {
	Step  int      `json:"step"`
	Texts []Sample `json:"texts"`
}

// A Sample is a prompt and the text that the model wrote after it.
type Sample struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
}

const (
	maxPrompts     = 64
	maxPromptsFile = 1 << 20 // bytes
	maxSamples     = 4 << 20 // bytes of a file
	samplesName    = "step-%08d.json"
)

func (d runDir) samples() string { return filepath.Join(string(d), "samples") }

// prompts holds the prompts that the model of a run continues.
type prompts struct {
	texts []string
	ids   [][]int32
	train.Continuation
}

// openPrompts reads the prompts of a run with samples.every. All ranks take those that the leader reads.
func (s *session) openPrompts() error {
	c := s.cfg.Samples
	if c.Every == 0 {
		return nil
	}
	p := &prompts{texts: []string{""}, Continuation: train.Continuation{
		Tokens: c.Tokens, End: -1, Sampling: model.Sampling{Temperature: c.Temperature, Seed: s.cfg.Seed},
	}}
	if c.Prompts != "" {
		text, err := led(s.world, s.readPrompts)
		if err != nil || text == nil {
			return err
		}
		p.texts = linesOf(text)
	}
	var before []int32 // a document follows the end of another
	if end, err := s.corpus.Tokenizer.EndOfText(); err == nil {
		p.End, before = int32(end), []int32{int32(end)}
	}
	for _, text := range p.texts {
		ids := slices.Clone(before)
		for _, id := range s.corpus.Tokenizer.NewEncoder().Encode(nil, []byte(text)) {
			ids = append(ids, int32(id))
		}
		if len(ids) == 0 {
			return s.world.same(config.Problem{
				Key: "samples.prompts", Try: "samples.prompts = FILE, with a prompt on each line",
				Message: "samples.every without samples.prompts: the tokenizer has no token that ends a text, " +
					"after which the next would begin",
			})
		}
		p.ids = append(p.ids, ids)
	}
	s.prompts = p
	return nil
}

// readPrompts reads the file of samples.prompts. A resume does without a file that it cannot use, because samples are
// only for reading: it warns, and returns nil.
func (s *session) readPrompts() ([]byte, error) {
	path := s.cfg.Samples.Prompts
	text, err := fileio.ReadSmall(path, maxPromptsFile)
	if n := len(linesOf(text)); err == nil && (n == 0 || n > maxPrompts) {
		err = fmt.Errorf("%s has %d lines with a prompt; from 1 to %d can be", path, n, maxPrompts)
	}
	switch {
	case err == nil:
		return text, nil
	case Exists(s.Dir):
		s.warnEarly(fmt.Sprintf("samples.prompts: %v; the model writes no samples", err))
		return nil, nil
	}
	return nil, config.Problem{
		Key: "samples.prompts", Message: fmt.Sprintf("samples.prompts: %v", err),
		At: s.cfg.Origin("samples.prompts").Place(), Try: "a text file with a prompt on each line",
	}
}

// linesOf returns the lines of a text that are not empty.
func linesOf(text []byte) []string {
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
}

// writesSamples reports whether samples are due after the current step.
func (s *session) writesSamples() bool {
	return s.prompts != nil && (s.done || s.trainer.Position().Step%s.cfg.Samples.Every == 0)
}

// writeSamples lets the model continue the prompts, and stores the results.
func (s *session) writeSamples() error {
	s.watch.enter(evaluating)
	defer s.watch.enter(idle)
	made, err := s.trainer.Continue(s.prompts.ids, s.prompts.Continuation)
	if err != nil {
		return err
	}
	out := Samples{Step: s.trainer.Position().Step}
	for i, ids := range made {
		var text []byte
		for _, id := range ids {
			text = s.corpus.Tokenizer.Decode(text, []uint32{uint32(id)})
		}
		out.Texts = append(out.Texts, Sample{s.prompts.texts[i], strings.ToValidUTF8(string(text), "\uFFFD")})
	}
	return s.world.lead(func() error {
		var texts []sinks.Text
		for _, x := range out.Texts {
			texts = append(texts, sinks.Text(x))
		}
		s.sinks.Wrote(out.Step, texts)
		text, err := json.MarshalIndent(out, "", "  ")
		if err == nil {
			err = os.MkdirAll(s.dir.samples(), 0o777)
		}
		if err == nil {
			err = writeDurably(filepath.Join(s.dir.samples(), fmt.Sprintf(samplesName, out.Step)), append(text, '\n'))
		}
		if err != nil { // samples are only for reading: training continues without them
			s.Warn(fmt.Sprintf("cannot keep what the model wrote after step %d: %v", out.Step, err))
		}
		return nil
	})
}

// forgetSamples removes the samples of steps after the one that a run continues from.
func (d runDir) forgetSamples(step int) error {
	for _, s := range d.sampled() {
		if s <= step {
			continue
		}
		if err := os.Remove(filepath.Join(d.samples(), fmt.Sprintf(samplesName, s))); err != nil {
			return fmt.Errorf("cannot continue the run: %w", err)
		}
	}
	return nil
}

// sampled returns the steps that have samples, ascending.
func (d runDir) sampled() (steps []int) {
	names, _ := os.ReadDir(d.samples())
	for _, name := range names {
		digits, ok := strings.CutPrefix(strings.TrimSuffix(name.Name(), ".json"), "step-")
		if step, err := strconv.Atoi(digits); ok && err == nil && fmt.Sprintf(samplesName, step) == name.Name() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps
}

// ReadSamples reads the samples of the run in dir, of a limited number of steps: the first, the last and steps evenly
// between them. Files that cannot be read are left out.
func ReadSamples(dir string, most int) (list []Samples) {
	d := runDir(dir)
	steps := d.sampled()
	if n := len(steps); n > most {
		few := make([]int, most)
		for i := range few {
			few[i] = steps[i*(n-1)/max(1, most-1)]
		}
		steps = few
	}
	for _, step := range steps {
		text, err := fileio.ReadSmall(filepath.Join(d.samples(), fmt.Sprintf(samplesName, step)), maxSamples)
		if err != nil {
			continue
		}
		var s Samples
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&s); err == nil && s.Step == step {
			list = append(list, s)
		}
	}
	return list
}
