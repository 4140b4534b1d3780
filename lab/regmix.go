package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/internal/fileio"
	"anneal/internal/jsonlimit"
	"anneal/run"
)

// RegMixOptions are the options of RegMix.
type RegMixOptions struct {
	MixtureOptions
	Proxies int      // models to train, at least leastProxies
	Target  []string // names of the sources whose mean held-out loss is minimised; nil means all

	OnProxy func(done, all int)
}

// leastProxies is the number of losses that a regression and its cross-validation need.
const leastProxies = 10

// RegMixResult is the result of RegMix.
type RegMixResult struct {
	Mixture
	Family string `json:"regression"` // linear or log-quadratic, see fitMix
	// of a prediction, in bits per byte: root mean square, leave one out
	Error float64 `json:"error"`
	// Spearman's, between held-out predictions and losses (cross-validation)
	Rank      float64        `json:"rank_correlation"`
	Predicted float64        `json:"predicted"` // bits per byte, for the weights found
	AtStart   float64        `json:"start"`     // bits per byte, for the initial weights
	Proxies   []TrainedProxy `json:"proxies"`
	HeldOut   []float64      `json:"-"` // for each proxy, the prediction of a regression that had not seen it
	Target    []float64      `json:"-"` // the loss of each proxy
}

// TrainedProxy is a line of the journal: a mixture, and the losses of a small model trained on it.
type TrainedProxy struct {
	Index       int       `json:"proxy"`
	Weights     []float64 `json:"weights"`
	BitsPerByte []float64 `json:"bits_per_byte"` // of the held-out text of each source
}

// RegMix finds the weights of a mixture by regression (Liu et al. 2024, arXiv 2407.01492). Many tiny models are
// trained for a few steps, each on another mixture drawn around the natural one (mixtureSampler). A regression from
// weights to loss predicts the loss of many more mixtures, and the result is the mean of the best ones. The
// regression (fitMix) is ridge regression; the paper uses LightGBM, which needs hundreds of proxies.
//
// RegMix trains Proxies models as configured. They should be small: only their ranking matters, and the result says
// how well the regression ranks mixtures that it has not seen. Finished proxies are kept in o.Out/proxies.jsonl and
// never trained again; a later call with more proxies adds to them.
//
// Use at most about a third as many sources as proxies. Do not use the regression for weights far outside those of
// the proxies.
func RegMix(ctx context.Context, o RegMixOptions) (*RegMixResult, error) {
	if o.Proxies < leastProxies {
		return nil, config.Problem{
			Message: fmt.Sprintf("%d proxies are too few to validate a regression", o.Proxies),
			Try:     fmt.Sprintf("%d or more", leastProxies),
		}
	}
	s, err := newSearch(o.MixtureOptions)
	if err != nil {
		return nil, err
	}
	defer s.unlock()
	target, err := s.target(o.Target)
	if err != nil {
		return nil, err
	}
	proxies, err := s.trainProxies(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &RegMixResult{Proxies: proxies}
	var mixtures [][]float64
	for _, p := range proxies {
		loss := 0.0
		for _, i := range target {
			loss += p.BitsPerByte[i] / float64(len(target))
		}
		mixtures, r.Target = append(mixtures, p.Weights), append(r.Target, loss)
	}
	fit := fitMix(mixtures, r.Target)
	weights, err := bestMix(ctx, fit, newMixtureSampler(s.weights), s.cfg.Seed)
	if err != nil {
		return nil, err
	}
	r.HeldOut = crossPredict(mixtures, r.Target)
	r.Family, r.Error, r.Rank = fit.Family, fit.Error, rankCorrelation(r.HeldOut, r.Target)
	r.Predicted, r.AtStart = fit.predict(weights), fit.predict(s.weights)
	m, err := s.found("regmix", weights)
	if err != nil {
		return nil, err
	}
	r.Mixture = *m
	return r, nil
}

// target returns the indices of the sources whose loss counts; all if none is named.
func (s *search) target(names []string) (list []int, err error) {
	for i, source := range s.sources {
		if len(names) == 0 || slices.Contains(names, source.Name) {
			list = append(list, i)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(s.sources, func(m MixtureSource) bool { return m.Name == name }) {
			return nil, config.Problem{
				Message: fmt.Sprintf("the target %q is not a source", name), Try: "one of the names in data.mix",
			}
		}
	}
	return list, nil
}

// trainProxies returns the proxies, and trains those that are not in the journal.
func (s *search) trainProxies(ctx context.Context, o RegMixOptions) ([]TrainedProxy, error) {
	journal, proxies, err := openProxyJournal(filepath.Join(s.Out, "proxies.jsonl"), proxyHeader{s.cfg, s.sources})
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	sampler := newMixtureSampler(s.weights)
	for i := len(proxies); i < o.Proxies; i++ {
		o.OnProxy(i, o.Proxies)
		p := TrainedProxy{Index: i, Weights: sampler.draw(s.cfg.Seed, i)}
		if err := s.trainProxy(ctx, &p); err != nil {
			return nil, fmt.Errorf("proxy %d: %w", i+1, err)
		}
		if err := appendLine(journal, p); err != nil {
			return nil, fmt.Errorf("cannot save proxy %d: %w", i+1, err)
		}
		proxies = append(proxies, p)
	}
	return proxies[:o.Proxies], nil
}

// trainProxy trains a model on the weights of p and measures it.
func (s *search) trainProxy(ctx context.Context, p *TrainedProxy) error {
	cfg, err := s.with(p.Weights)
	if err != nil {
		return err
	}
	t, err := run.NewTrial(cfg, nil, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	for range cfg.Train.Steps {
		step, err := t.Step(ctx)
		if err != nil {
			return err
		}
		if math.IsNaN(step.Loss) || math.IsInf(step.Loss, 0) {
			return config.Problem{
				Key: "optimizer.lr", Message: fmt.Sprintf("the loss of a proxy is %v", step.Loss),
				Try: "a lower optimizer.lr; `anneal lr-find` suggests a range",
			}
		}
	}
	e, err := t.Evaluate(ctx, cfg.Train.EvalTokens)
	if err != nil {
		return err
	}
	for _, source := range e.Sources {
		p.BitsPerByte = append(p.BitsPerByte, float64(source.BitsPerByte))
	}
	return nil
}

// proxyHeader is the first line of the journal: everything that the results of the proxies depend on.
type proxyHeader struct {
	Config  *config.Config  `json:"config"`
	Sources []MixtureSource `json:"sources"`
}

// differs describes how a journal with header h differs from the current search; "" if it does not.
func (h *proxyHeader) differs(now proxyHeader) string {
	if h.Config == nil {
		return "the configuration is not recorded"
	}
	list := run.Changes(h.Config, now.Config)
	if a, b := h.Config.Train.EvalTokens, now.Config.Train.EvalTokens; a != b {
		list = append(list, fmt.Sprintf("train.eval_tokens: %d → %d", a, b))
	}
	if len(h.Sources) != len(now.Sources) {
		list = append(list, fmt.Sprintf("sources: %d → %d", len(h.Sources), len(now.Sources)))
	} else {
		for i, s := range now.Sources {
			if was := h.Sources[i]; was.Name != s.Name || was.Data != s.Data {
				list = append(list, fmt.Sprintf("source %d: %s (%.12s…) → %s (%.12s…)",
					i+1, was.Name, was.Data, s.Name, s.Data))
			}
		}
	}
	return strings.Join(list, "\n  ")
}

const maxJournal = 64 << 20 // bytes; 1,000 proxies on mixtures of 1,000 sources have 40 MB

// journalMost limits the size of a line with a configuration and its sources, or with the numbers of a proxy.
var journalMost = jsonlimit.Limits{Objects: 10_000, Values: 100_000}

// readProxies reads the lines of a journal.
func readProxies(lines []byte, path string, header proxyHeader) (proxies []TrainedProxy, err error) {
	n := 0
	for line := range bytes.Lines(lines) {
		n++
		if n == 1 {
			var h proxyHeader
			err := journalMost.Check(line)
			if err == nil {
				err = json.Unmarshal(line, &h)
			}
			if err != nil {
				return nil, fmt.Errorf("%s is not a proxy journal: %w", path, err)
			}
			if list := h.differs(header); list != "" {
				return nil, config.Problem{
					Message: path + " holds proxies with another configuration or other data:\n  " + list,
					Try:     "another --out, or the original configuration and data",
				}
			}
			continue
		}
		var p TrainedProxy
		sources := len(header.Sources)
		damaged := journalMost.Check(line) != nil || json.Unmarshal(line, &p) != nil
		if damaged || p.Index != len(proxies) || len(p.Weights) != sources || len(p.BitsPerByte) != sources {
			return nil, fmt.Errorf("%s: line %d is damaged: remove it and all later lines", path, n)
		}
		proxies = append(proxies, p)
	}
	return proxies, nil
}

// openProxyJournal opens the journal at path for more lines, and returns those it has. A last line cut short by a kill
// is dropped.
func openProxyJournal(path string, header proxyHeader) (*os.File, []TrainedProxy, error) {
	text, err := fileio.ReadSmall(path, maxJournal)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	proxies, err := readProxies(whole, path, header)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, nil, err
	}
	err = f.Truncate(int64(len(whole)))
	if err == nil {
		_, err = f.Seek(int64(len(whole)), 0)
	}
	if err == nil && len(whole) == 0 {
		err = appendLine(f, header)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, proxies, nil
}

// appendLine appends a line of JSON and syncs the file.
func appendLine(f *os.File, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// Chart draws losses over the predictions of regressions that had not seen them.
func (r *RegMixResult) Chart() *chart.Chart {
	low, high := slices.Min(r.Target), slices.Max(r.Target)
	return &chart.Chart{
		Title: fmt.Sprintf("RegMix: %d proxies, rank correlation %.2f", len(r.Proxies), r.Rank),
		X:     chart.Axis{Label: "predicted by leave-one-out (bits per byte)"},
		Y:     chart.Axis{Label: "measured (bits per byte)"},
		Series: []chart.Series{
			{Name: "a proxy", X: r.HeldOut, Y: r.Target, Style: chart.Points},
			{Name: "as predicted", X: []float64{low, high}, Y: []float64{low, high}},
		},
	}
}
