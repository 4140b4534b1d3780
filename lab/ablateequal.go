package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"anneal/bench"
	"anneal/config"
	"anneal/internal/fileio"
	"anneal/internal/units"
	"anneal/plan"
)

// The resources that all variants can have the same amount of. A variant with its own train.steps or train.micro_batch
// keeps it.
const (
	EqualTokens  = "tokens"  // the steps of the configuration
	EqualCompute = "compute" // steps for the same operations, by plan.Foresight.FLOPsPerToken
	// steps for the same time, at speeds measured beforehand; the figures depend on the machine
	EqualTime = "time"
	// the largest micro-batch whose planned bytes are at most the first's; the tokens are the same, so speeds show
	// what memory brings
	EqualMemory = "memory"
)

// speedsFile keeps the measured speeds of EqualTime, so that a resumed ablation has the same steps.
const speedsFile = "speeds.json"

// speedTime is how long the measurement of a speed is repeated. The highest speed counts, because other work on the
// machine, which runs for many milliseconds at a time, only lowers it.
const speedTime = 2 * time.Second

// equalise gives all variants the same amount of o.Equal as the first.
func (o AblateOptions) equalise(ctx context.Context, list []Ablated) error {
	give := o.giveSteps
	switch o.Equal {
	case EqualTokens:
		return nil
	case EqualMemory:
		give = func(_ context.Context, first, v *Ablated) error { return o.giveMicroBatch(first, v) }
	}
	for i := range list[1:] {
		if err := give(ctx, &list[0], &list[1+i]); err != nil {
			return fmt.Errorf("%s: %w", list[1+i].Name, err)
		}
	}
	return nil
}

// sets reports whether the variant itself sets a key.
func (o AblateOptions) sets(v *Ablated, key string) bool {
	return slices.ContainsFunc(v.overrides[len(o.Overrides):],
		func(s string) bool { return strings.HasPrefix(s, key+"=") })
}

// giveSteps gives a variant the number of steps that takes as many operations or seconds as the first variant.
func (o AblateOptions) giveSteps(ctx context.Context, first, v *Ablated) (err error) {
	if o.sets(v, "train.steps") {
		return nil
	}
	var step [2]float64 // operations or seconds of a step
	for n, a := range []*Ablated{first, v} {
		if step[n], err = o.stepOf(ctx, a.Config); err != nil {
			return err
		}
	}
	steps := max(int(math.Round(float64(first.Config.Train.Steps)*step[0]/step[1])), 1)
	v.overrides = append(v.overrides, fmt.Sprintf("train.steps=%d", steps))
	v.Config, err = o.load(v.overrides)
	var wrong config.Problem
	if errors.As(err, &wrong) { // the user did not write this number of steps
		wrong.Message = fmt.Sprintf("as much %s as the first is %d steps: %s", o.Equal, steps, wrong.Message)
		return wrong
	}
	return err
}

// stepOf returns the operations or seconds that a step of a configuration takes.
func (o AblateOptions) stepOf(ctx context.Context, cfg *config.Config) (float64, error) {
	f, err := plan.Outline(cfg.Clone())
	if err != nil {
		return 0, err
	}
	tokens := float64(f.Tokens) / float64(cfg.Train.Steps) // of a mean step: a ramp begins with smaller ones
	if o.Equal == EqualTime {
		speed, err := o.speedOf(ctx, cfg)
		return tokens / speed, err
	}
	return f.FLOPsPerToken * tokens, nil
}

// speedOf returns the speed of a configuration in tokens per second, on the threads of its runs. A resumed ablation
// uses the speed measured when it began.
func (o AblateOptions) speedOf(ctx context.Context, cfg *config.Config) (float64, error) {
	path := filepath.Join(o.Out, speedsFile)
	sum := sha256.Sum256(cfg.YAML())
	key := hex.EncodeToString(sum[:])
	speeds := map[string]float64{}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return 0, err
	default:
		if err := json.Unmarshal(text, &speeds); err != nil {
			return 0, fmt.Errorf("%s: %w\n  delete it, and speeds are measured again", path, err)
		}
	}
	if speed := speeds[key]; speed > 0 {
		return speed, nil
	}
	cfg = cfg.Clone()
	if _, err := plan.Foresee(cfg); err != nil { // which takes the vocabulary from the data
		return 0, err
	}
	if o.Threads > 0 {
		cfg.Threads = o.Threads
	}
	for begin := time.Now(); speeds[key] == 0 || time.Since(begin) < speedTime; {
		speed, err := bench.Speed(ctx, cfg)
		if err != nil {
			return 0, err
		}
		speeds[key] = max(speeds[key], speed)
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return 0, err
	}
	return speeds[key], fileio.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(speeds) })
}

// giveMicroBatch gives a variant the largest micro-batch with which its planned memory is at most the first's.
func (o AblateOptions) giveMicroBatch(first, v *Ablated) error {
	if o.sets(v, "train.micro_batch") {
		return nil
	}
	most, err := plan.Foresee(first.Config.Clone())
	if err != nil {
		return err
	}
	rows := v.Config.Train.BatchTokens / v.Config.Model.Context
	var fits *config.Config
	var override string
	var wrong error
	sizes := divisors(rows)
	sort.Search(len(sizes), func(i int) bool { // the first that does not fit
		text := fmt.Sprintf("train.micro_batch=%d", sizes[i])
		cfg, err := o.load(append(slices.Clone(v.overrides), text))
		if err != nil { // more than ranks or a ramp of the batch leave
			return true
		}
		f, err := plan.Foresee(cfg.Clone())
		if err != nil {
			wrong = err
			return true
		}
		if f.Bytes > most.Bytes {
			return true
		}
		fits, override = cfg, text
		return false
	})
	switch {
	case wrong != nil:
		return wrong
	case fits == nil:
		return config.Problem{
			Key: "train.micro_batch",
			Message: fmt.Sprintf("with one sequence at a time it needs more than the %s of the first",
				units.FormatBytes(most.Bytes)),
			Try: "a larger train.micro_batch for all runs, or --equal tokens",
		}
	}
	v.overrides, v.Config = append(v.overrides, override), fits
	return nil
}

// divisors returns the divisors of n, ascending.
func divisors(n int) (list []int) {
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}
