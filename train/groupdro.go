package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"anneal/config"
	"anneal/dataset"
	"anneal/model"
	"anneal/tensor"
)

// GroupDRO shifts the weights of a mixture's domains during training towards the domains with the most left to learn.
// It is the proxy model of DoReMi (Xie et al. 2023, arXiv 2305.10429, algorithm 1), which is group distributionally
// robust optimisation (Sagawa et al. 2020, arXiv 1911.08731) of the excess loss over a reference model. A step reads
// equally many rows of each of k domains,
//
//	λᵢ = mean over the domain's tokens of max(proxy's loss − reference's loss, 0)
//	αᵢ ← (1 − c)·αᵢ·exp(η·λᵢ) / Σⱼ αⱼ·exp(η·λⱼ) + c/k,  αᵢ = 1/k at first
//
// and updates the proxy by the gradient of Σ αᵢ·(mean loss of domain i), with the new α. Every micro-batch holds one
// domain, so its weight is a factor of the micro-batch's loss. The result is the mean of α over the steps.
//
// It costs the memory of the reference's weights, and two more forward passes per step, one by each model: 5/3 of the
// time. It is for choosing weights, not for training the final model. Not for domains with few tokens that are seen
// often: their excess loss then measures what the reference has memorised.
type GroupDRO struct {
	Rate      float64 // η; 1 in the paper
	Smoothing float64 // c; 1e-3 in the paper
}

// Check rejects invalid numbers, and configurations in which the weights would mean something else. With smoothing
// above 0 no weight is ever 0.
func (o GroupDRO) Check(cfg *config.Config) error {
	for _, bad := range []struct {
		is                bool
		key, message, try string
	}{
		{cfg.Train.BatchRamp.Given(), "train.batch_ramp",
			"group DRO needs a constant batch size, to share it evenly between the domains", "removing it"},
		{cfg.Data.Order.Given(), "data.order", "group DRO needs rows in random order: with ordered rows, " +
			"the weights reflect the scores of the rows instead of what is left to learn",
			"removing it here; the final run can use it"},
		{cfg.Data.Skip != nil, "data.skip", "group DRO cannot skip samples", "removing it"},
		{cfg.Train.NoiseScaleEvery != 0, "train.noise_scale_every",
			"with weighted domains, the gradient noise scale does not apply to other runs", "0"},
		{cfg.Distill.On(), "distill.teacher", "group DRO weighs domains by the cross-entropy alone", "removing it"},
		{cfg.Parallel.Outer.On(), "parallel.outer.groups",
			"group DRO weighs the domains of whole steps, of which groups that step alone see parts", "0"},
	} {
		if bad.is {
			return config.Problem{Key: bad.key, Message: bad.message, At: cfg.Origin(bad.key).Place(), Try: bad.try}
		}
	}
	if o.Rate >= 0 && o.Rate <= 1e3 && o.Smoothing > 0 && o.Smoothing < 1 {
		return nil
	}
	return config.Problem{
		Message: fmt.Sprintf("group DRO cannot use rate %g with smoothing %g", o.Rate, o.Smoothing),
		Try:     "a rate from 0 to 1000, such as 1, and a smoothing above 0 and below 1, such as 0.001",
	}
}

// DomainWeights is the state of group DRO.
type DomainWeights struct {
	Alpha  []float64 `json:"alpha"`
	Sum    []float64 `json:"sum"`    // sum of Alpha over the updates
	Excess []float64 `json:"excess"` // λ of the last update
}

// DomainState is the state of group DRO in checkpoints.
type DomainState struct {
	Rate      float64 `json:"rate"`
	Smoothing float64 `json:"smoothing"`
	DomainWeights
}

// robust is group DRO in a trainer.
type robust struct {
	GroupDRO
	reference *model.Decoder
	state     DomainWeights
	next      DomainWeights // of the current step
	factors   []float64     // [k]: factor of the summed losses of a domain in the current step
	targets   []int         // [k]
	losses    []float64     // [N] of the proxy
}

// WeighDomains makes t weigh k domains by the excess loss over a reference, a model of the same shape and tokenizer
// that is on t's device and outlives t. Micro-batch i of a step holds domain i mod k.
func (t *Trainer) WeighDomains(o GroupDRO, reference *model.Decoder, k int) error {
	if err := o.Check(t.cfg); err != nil {
		return err
	}
	if t.cfg.Parallel.Shared() > 1 {
		return config.Problem{
			Key: "parallel.ranks", Try: "parallel.tensor = parallel.context = parallel.pipeline = 1",
			Message: "domains are weighed by the losses of whole micro-batches, of which ranks of parallel.tensor, " +
				"context or pipeline have a part",
		}
	}
	if micro := t.ramps.Next(t.progress).Micro; k < 2 || micro%k != 0 {
		return config.Problem{
			Key: "train.batch_tokens", Message: fmt.Sprintf("%d micro-batches per step cannot be shared evenly "+
				"by %d domains", micro, k), Try: "at least two domains, and a multiple of their number",
		}
	}
	t.robust = &robust{
		GroupDRO: o, reference: reference, factors: make([]float64, k), targets: make([]int, k),
		losses: make([]float64, t.batch.Tokens.Len()), state: newDomainWeights(k), next: newDomainWeights(k),
	}
	return nil
}

func newDomainWeights(k int) DomainWeights {
	d := DomainWeights{Alpha: make([]float64, k), Sum: make([]float64, k), Excess: make([]float64, k)}
	for i := range d.Alpha {
		d.Alpha[i] = 1 / float64(k)
	}
	return d
}

// update computes next from d and the excess losses in next, by the formula of GroupDRO.
func (d *DomainWeights) update(next *DomainWeights, rate, smoothing float64) {
	top := math.Inf(-1)
	for _, x := range next.Excess {
		top = max(top, x)
	}
	sum := 0.0
	for i, x := range next.Excess {
		next.Alpha[i] = d.Alpha[i] * math.Exp(rate*(x-top)) // exp(−η·top) cancels
		sum += next.Alpha[i]
	}
	for i, a := range next.Alpha {
		next.Alpha[i] = (1-smoothing)*(a/sum) + smoothing/float64(len(next.Alpha))
		next.Sum[i] = d.Sum[i] + next.Alpha[i]
	}
}

// mean returns the mean of the weights over the updates, which sums to 1; before the first update, the current
// weights.
func (d *DomainWeights) mean(updates int) []float64 {
	if updates == 0 {
		return d.Alpha
	}
	mean := make([]float64, len(d.Sum))
	for i, s := range d.Sum {
		mean[i] = s / float64(updates)
	}
	return mean
}

// weigh computes the weights for the step whose samples start at from, by a forward pass of both models over all of
// it. They take effect in commit, after the update.
func (r *robust) weigh(ctx context.Context, t *Trainer, src dataset.Source, from uint64) error {
	clear(r.next.Excess)
	clear(r.targets)
	k := len(r.targets)
	for first := 0; first < t.accum; first += t.world.Size() {
		if err := ctx.Err(); err != nil && t.shard == nil {
			return err
		}
		excess, targets, err := r.measure(t, src, from, first+t.world.Rank())
		if err != nil {
			return err
		}
		all, err := t.shareFloats(excess, float64(targets))
		if err != nil {
			return err
		}
		for d := range min(t.accum-first, len(all)) {
			r.next.Excess[(first+d)%k] += all[d][0]
			r.targets[(first+d)%k] += int(all[d][1])
		}
	}
	all := 0
	for i, n := range r.targets {
		all += n
		if n == 0 {
			r.next.Excess[i] = r.state.Excess[i] // without targets it cannot be measured
		} else {
			r.next.Excess[i] /= float64(n)
		}
	}
	r.state.update(&r.next, r.Rate, r.Smoothing)
	for i, a := range r.next.Alpha {
		r.factors[i] = a * float64(all) / float64(max(r.targets[i], 1)) // the step divides by all targets
	}
	return nil
}

// measure returns the excess loss of micro-batch i of the step whose samples start at from, and the number of its
// targets. If this rank does not have the micro-batch, it only takes part in the ranks' exchanges.
func (r *robust) measure(t *Trainer, src dataset.Source, from uint64, i int) (sum float64, targets int, err error) {
	if i >= t.accum {
		return 0, 0, t.loss(false)
	}
	if err := t.load(src, from+uint64(i*t.rows)); err != nil {
		return 0, 0, err
	}
	if err := t.loss(true); err != nil {
		return 0, 0, err
	}
	losses := t.batch.HostLosses(t.dev)
	for j := range r.losses {
		r.losses[j] = losses.Float64(j)
	}
	t.tape.Reset(false)
	r.reference.Loss(t.tape, t.batch)
	sum = excess(r.losses, t.batch.HostLosses(t.dev))
	return sum, t.data.Valid(), Wait(t.dev)
}

// excess sums the excess of the proxy's loss over the reference's per token; both are 0 where the target is ignored.
func excess(proxy []float64, reference *tensor.Tensor) float64 {
	sum := 0.0
	for j, loss := range proxy {
		sum += max(loss-reference.Float64(j), 0)
	}
	return sum
}

// MeanDomainWeights returns the mean of the domain weights over the updates; nil for trainers without domain weights.
func (t *Trainer) MeanDomainWeights() []float64 {
	if t.robust == nil {
		return nil
	}
	return t.robust.state.mean(t.progress.Updates)
}

// saved returns the state for checkpoints; nil for trainers without domain weights.
func (r *robust) saved() *DomainState {
	if r == nil {
		return nil
	}
	return &DomainState{r.Rate, r.Smoothing, r.state}
}

// commit makes the weights of the completed step current.
func (r *robust) commit() { r.state, r.next = r.next, r.state }

// factor returns the factor of the loss of micro-batch i of the step.
func (t *Trainer) factor(i int) float64 {
	if t.robust == nil {
		return 1
	}
	return t.robust.factors[i%len(t.robust.factors)]
}

// errNoDomains reports a run that was started without group DRO, ErrNeedsReference one that was started with it.
var (
	errNoDomains      = errors.New("was not trained by group DRO\n  choose another directory")
	ErrNeedsReference = errors.New("is the proxy of a search for domain weights, which needs its reference\n" +
		"  continue with the command that started it, such as `anneal mix doremi`")
)

// RestoreDomains restores the weights from a checkpoint of the run in dir.
func (t *Trainer) RestoreDomains(saved *DomainState, dir string) error {
	switch {
	case saved == nil && t.robust == nil:
		return nil
	case saved == nil:
		return fmt.Errorf("%s %w", dir, errNoDomains)
	case t.robust == nil:
		return fmt.Errorf("%s %w", dir, ErrNeedsReference)
	}
	r := t.robust
	if n, k := len(saved.Alpha), len(r.targets); n != k || len(saved.Sum) != k || len(saved.Excess) != k {
		return fmt.Errorf("%s has weights for %d domains, but there are %d", dir, n, k)
	}
	if saved.Rate != r.Rate || saved.Smoothing != r.Smoothing {
		return config.Problem{
			Message: fmt.Sprintf("%s updated its domain weights with rate %g and smoothing %g, not %g and %g",
				dir, saved.Rate, saved.Smoothing, r.Rate, r.Smoothing),
			Try: "the original values, or another directory",
		}
	}
	r.state = saved.DomainWeights
	return nil
}
