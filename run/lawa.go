package run

import (
	"errors"
	"fmt"
	"slices"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/internal/fileio"
	"anneal/model"
	"anneal/tensor"
	"anneal/tokenizer"
	"anneal/train"
)

// AverageReport describes the result of AverageCheckpoints.
type AverageReport struct {
	Run         string  `json:"run"`
	Steps       []int64 `json:"steps"`
	WeightsHash string  `json:"weights_hash"`
}

// AverageCheckpoints writes a run directory whose weights are the mean of the last n checkpoints of the run in dir,
// one per step: LAWA, latest weight averaging (Kaddour 2022, arXiv 2209.14981; Sanyal et al. 2023, arXiv 2306.03241).
//
//	w = (w₁ + … + wₙ) / n,  summed in float64 from the oldest step to the newest and rounded once
//
// It helps most while the learning rate is still high, and needs one more copy of the weights in float64 during the
// computation. Not for checkpoints far apart in training: their mean is no better than the worst of them. It verifies
// every byte that it reads; a damaged checkpoint is an error and is not skipped. So is a run that diverged, unless
// allowOlder accepts its checkpoints from before the divergence. The result is for generate, eval and export; it has no
// optimizer state and cannot be resumed.
func AverageCheckpoints(dir string, n int, out string, allowOlder bool) (*AverageReport, error) {
	src, dst := runDir(dir), runDir(out)
	cfg, err := src.load()
	if err != nil {
		return nil, err
	}
	if err := CheckNewRun(out); err != nil {
		return nil, err
	}
	t, err := tokenizer.Load(src.tokenizer())
	if err != nil {
		return nil, &dataset.Error{Err: err}
	}
	if cfg.Model.Vocab == 0 {
		cfg.Derive("model.vocab", t.VocabSize(), "the tokenizer of "+dir)
	}
	steps, err := lastSteps(src, n)
	if err != nil {
		return nil, err
	}
	if err := src.checkDiverged(steps[len(steps)-1]); err != nil && !allowOlder {
		return nil, err
	}
	policy, err := train.PolicyOf(cfg)
	if err != nil {
		return nil, err
	}
	c := cfg.Model
	params, err := tensor.NewArena("parameters", model.Measure(c, policy, 1, c.Context, false).Params)
	if err != nil {
		return nil, err
	}
	defer params.Close()
	m := model.New(c, model.MemoryOf(device.Host{}, policy, params, nil))
	last, err := meanOfSteps(src, steps, m)
	if err != nil {
		return nil, err
	}
	if err := last.checkTokenizer(t, src); err != nil {
		return nil, err
	}
	r := &AverageReport{Run: out, Steps: steps}
	r.WeightsHash, err = dst.derive(src, cfg, t, last, m, "anneal ckpt average")
	return r, err
}

// derive makes d a run with the weights of m, for generate, eval and export. command made them from the weights of src
// in the state last. It returns the hash of the weights.
func (d runDir) derive(src runDir, cfg *config.Config, t *tokenizer.Tokenizer, last *state, m *model.Decoder,
	command string) (hash string, err error) {
	tok, err := fileio.ReadSmall(src.tokenizer(), tokenizer.MaxFile)
	if err != nil {
		return "", &dataset.Error{Err: err}
	}
	cfg.DeriveText("average.ema", "0", command)
	if err := d.begin(); err != nil {
		return "", err
	}
	files := newRunFiles(d, cfg, tok, t)
	store, err := checkpoint.Open(d.checkpoints(), checkpoint.Options{Synchronous: true, Origin: files.origin()})
	if err != nil {
		return "", err
	}
	defer store.Close()
	hash, _, _ = checkpoint.HashTensors(weightTensors(m))
	made := state{
		Model: last.Model, Tokenizer: last.Tokenizer, Progress: last.Progress, Tier: last.Tier,
		Imported: last.Imported, Special: last.Special, ChatTemplate: last.ChatTemplate,
	}
	if err := store.Save(int64(last.Progress.Step), last.Progress.Tokens, weightTensors(m), &made); err != nil {
		return "", err
	}
	return hash, d.finish(files)
}

// lastSteps returns the newest n steps that have a checkpoint, in ascending order.
func lastSteps(d runDir, n int) ([]int64, error) {
	entries, err := checkpoint.List(d.checkpoints())
	if err != nil {
		return nil, err
	}
	var steps []int64
	for _, e := range entries {
		if e.Err != nil {
			return nil, e.Err
		}
		if !slices.Contains(steps, e.Step) {
			steps = append(steps, e.Step)
		}
	}
	switch {
	case len(steps) == 0:
		return nil, fmt.Errorf("%s: %w", d, checkpoint.ErrNone)
	case len(steps) < 2:
		return nil, config.Problem{
			Key: "checkpoint.keep", Message: fmt.Sprintf("%s has only one checkpoint: there is nothing to average", d),
			At: d.config(), Try: "a run with checkpoint.every and checkpoint.keep set so that it keeps two or more",
		}
	case n < 2:
		return nil, config.Problem{
			Message: fmt.Sprintf("an average takes two checkpoints or more, not %d", n),
			Try:     fmt.Sprintf("--last from 2 to %d: %s has so many", len(steps), d),
		}
	case n > len(steps):
		return nil, config.Problem{
			Key: "checkpoint.keep", Message: fmt.Sprintf("cannot average the last %d checkpoints: %[3]s has %[2]d",
				n, len(steps), d),
			At: d.config(), Try: fmt.Sprintf("--last from 2 to %d; a larger checkpoint.keep keeps more on disk",
				len(steps)),
		}
	}
	slices.Sort(steps)
	return steps[len(steps)-n:], nil
}

// meanOfSteps writes the mean of the checkpoints of these steps to m and returns the state of the last.
func meanOfSteps(d runDir, steps []int64, m *model.Decoder) (*state, error) {
	sums := make([][]float64, len(m.Params()))
	for i, p := range m.Params() {
		sums[i] = make([]float64, p.Value.Len())
	}
	var last *state
	for _, step := range steps {
		last = &state{}
		info, err := checkpoint.LoadStep(d.checkpoints(), step, weightTensors(m), last)
		if fault := (*checkpoint.Fault)(nil); errors.As(err, &fault) {
			return nil, fmt.Errorf("%w\n  nothing was written; `anneal ckpt verify %s` finds the damage", err,
				d.word())
		}
		if err != nil {
			return nil, asConfigError(err, m.Config, d)
		}
		if err := d.checkOrigin(info); err != nil {
			return nil, err
		}
		if err := last.checkModel(m.Config, d); err != nil {
			return nil, err
		}
		if err := d.checkFinite(step, weightTensors(m)); err != nil {
			return nil, err
		}
		for i, p := range m.Params() {
			for j := range sums[i] {
				sums[i][j] += p.Value.Float64(j)
			}
		}
	}
	for i, p := range m.Params() {
		for j, s := range sums[i] {
			p.Value.SetFloat64(j, s/float64(len(steps)))
		}
	}
	return last, nil
}
