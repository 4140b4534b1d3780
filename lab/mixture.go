package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/prepare"
	"anneal/run"
	"anneal/train"
)

// MixtureOptions are the options of every search for the weights of a mixture. The configuration describes the small
// models; its data.mix names the sources, and its data.weights are the start of the search.
type MixtureOptions struct {
	Config    string // the YAML file
	Overrides []string
	Out       string // directory; a search that is already there is resumed
	Budget    int64  // tokens of the run that will use the weights; 0 means those of the configuration
	Threads   int    // overrides the configuration's if above 0

	OnPhase    func(what string)
	OnProgress func(train.Event)
}

// Mixture is the result of a search for weights.
type Mixture struct {
	Method  string          `json:"method"`
	Sources []MixtureSource `json:"sources"`
	Tokens  int64           `json:"tokens"` // the budget
	Config  string          `json:"config"` // the matching lines of a training configuration
}

// MixtureSource is a data set in a mixture.
type MixtureSource struct {
	Name    string  `json:"name"`
	Path    string  `json:"path"`    // its directory
	Data    string  `json:"data"`    // fingerprint of the data set
	Tokens  uint64  `json:"tokens"`  // in its training split
	Rows    uint64  `json:"rows"`    // into which data.packing puts them
	Natural float64 `json:"natural"` // its share of all rows
	Weight  float64 `json:"weight"`  // its share in the mixture found
	Epochs  float64 `json:"epochs"`  // how often the budget reads it
}

// search is a search for weights in progress.
type search struct {
	MixtureOptions
	cfg     *config.Config // as given
	sources []MixtureSource
	weights []float64 // the weights of the sources in cfg
	unlock  func() error
}

// newSearch measures the sources and locks o.Out for this process until unlock is called.
func newSearch(o MixtureOptions) (*search, error) {
	if err := run.CheckForRuns(o.Out); err != nil {
		return nil, err
	}
	s := &search{MixtureOptions: o}
	var err error
	if s.cfg, err = config.Load(o.Config, o.Overrides); err != nil {
		return nil, err
	}
	list, err := s.cfg.Sources()
	if err != nil {
		return nil, err
	}
	if s.cfg.Train.Minutes > 0 {
		return nil, config.Problem{
			Key: "train.minutes", Message: "runs limited by time cannot be compared or reproduced",
			Try: "train.steps instead",
		}
	}
	if len(list) < 2 {
		return nil, config.Problem{
			Key: "data.mix", Message: "a search for weights needs at least two sources",
			Try: "data.mix with two or more sources, such as data.mix=code=data/code,text=data/text",
		}
	}
	plans, _, err := prepare.MeasureSources(list, s.cfg.Data.Packing, s.cfg.Model.Context, s.add)
	if err != nil {
		return nil, err
	}
	all := uint64(0)
	for i, p := range plans {
		s.sources[i].Name, s.sources[i].Path, s.sources[i].Rows = p.Name, p.Path, p.Use.Rows
		all += p.Use.Rows
	}
	for i := range s.sources {
		s.sources[i].Natural = float64(s.sources[i].Rows) / float64(all)
	}
	mix, err := s.cfg.Mix(prepare.RowsOf(plans))
	if err != nil {
		return nil, err
	}
	if len(mix) != 1 {
		return nil, config.Problem{
			Key: "data.weights", Message: "a search needs initial weights that stay constant during the run",
			Try: "data.weights = natural",
		}
	}
	s.weights = dataset.Normalised(mix[0].Weights)
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return nil, err
	}
	s.unlock, err = checkpoint.Lock(o.Out)
	return s, err
}

// add adds a data set as the next source.
func (s *search) add(d *dataset.Dataset) error {
	if d.Manifest.Val.Tokens < 2 {
		return &dataset.Error{Err: fmt.Errorf("%s: %w, which is needed to compare mixtures\n"+
			"  rebuild it with `anneal data build --val 0.01`", d.Dir, dataset.ErrNoValidation)}
	}
	s.sources = append(s.sources, MixtureSource{Data: d.Fingerprint(), Tokens: d.Manifest.Train.Tokens})
	return nil
}

// with returns the configuration with these weights.
func (s *search) with(weights []float64) (*config.Config, error) {
	cfg, err := config.Load(s.Config, append(append([]string(nil), s.Overrides...), "data.weights="+s.text(weights)))
	if err == nil && s.Threads > 0 {
		cfg.Threads = s.Threads
	}
	return cfg, err
}

// text formats weights for data.weights without loss of precision.
func (s *search) text(weights []float64) string {
	words := make([]string, len(weights))
	for i, w := range weights {
		words[i] = s.sources[i].Name + "=" + strconv.FormatFloat(w, 'g', -1, 64)
	}
	return strings.Join(words, " ")
}

// shares formats weights for the user.
func (s *search) shares(weights []float64) string {
	words := make([]string, len(weights))
	for i, w := range weights {
		words[i] = fmt.Sprintf("%s %.3f", s.sources[i].Name, w)
	}
	return strings.Join(words, ", ")
}

// train trains or finishes the run in dir.
func (s *search) train(ctx context.Context, dir string, cfg *config.Config, dro *run.DRO) (*run.Result, error) {
	begin := run.Run
	if run.Exists(dir) {
		if err := sameRun(dir, cfg); err != nil {
			return nil, err
		}
		begin = run.Resume
	}
	r, err := begin(ctx, run.Options{Config: cfg, Dir: dir, Threads: s.Threads, DRO: dro, OnProgress: s.OnProgress})
	if err == nil && r.Interrupted {
		err = ctx.Err()
	}
	return r, err
}

// found returns the result, and writes it to mix.json.
func (s *search) found(method string, weights []float64) (*Mixture, error) {
	m := &Mixture{Method: method, Sources: s.sources, Tokens: s.Budget}
	if m.Tokens == 0 {
		m.Tokens = s.cfg.Tokens()
	}
	var sources []config.Source
	rows := float64(m.Tokens) / float64(s.cfg.Model.Context)
	for i := range m.Sources {
		source := &m.Sources[i]
		source.Weight = weights[i]
		source.Epochs = weights[i] * rows / float64(source.Rows)
		sources = append(sources, config.Source{Name: source.Name, Path: source.Path})
	}
	m.Config = prepare.MixConfig(sources, weights,
		fmt.Sprintf("%s, found with models of %d tokens", method, s.cfg.Tokens()))
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return m, fileio.Write(filepath.Join(s.Out, "mix.json"), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
