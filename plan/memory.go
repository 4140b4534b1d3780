package plan

import (
	"fmt"
	"slices"

	"anneal/device"
	"anneal/device/cpu/flash"
	"anneal/device/cpu/isa"
	"anneal/model"
	"anneal/precision"
)

// Item is one named part of a run's memory.
type Item struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Note  string `json:"note"` // what it is, or how it grows
}

// Estimate is the memory of a run, part by part.
type Estimate []Item

// Total sums the parts, in bytes.
func (e Estimate) Total() int64 {
	var n int64
	for _, i := range e {
		n += i.Bytes
	}
	return n
}

// Bytes returns the size of the part of a name.
func (e Estimate) Bytes(name string) int64 {
	i := slices.IndexFunc(e, func(i Item) bool { return i.Name == name })
	return e[i].Bytes
}

// Fits reports whether the whole fits in so many bytes.
func (e Estimate) Fits(available int64) bool { return e.Total() <= available }

// Optimizer is what an optimizer takes.
type Optimizer struct {
	Name           string
	State, Scratch int64   // bytes that it keeps between updates, and that it needs during one
	FLOPs          float64 // of an update, where they count beside those of training
}

// processBytes is what the binary, the Go heap, the loader and the worker stacks take beside the arenas.
const processBytes = 32 << 20

// Memory predicts what a training run holds at its peak: a model under a policy, with sequences of the context's length in
// a micro-batch, on so many workers of the CPU, and what the optimizer says of itself. With no workers it is what another device
// holds in memory of its own, but for what its kernels take.
//
// A block keeps for its backward pass, for each token: the inputs of its products, what its norms divided by, queries, keys and
// values, attention's output and one log-sum-exp a head. The residual stream and its gradient exist once each. Of what
// c.Recompute names, only what it says is kept. What is cheap to compute again lives in scratch, with the gradients of one
// block or the logits of one chunk.
func Memory(c model.Config, p precision.Policy, sequences, workers int, o Optimizer) Estimate {
	m := model.Outline(c, p)
	train, eval := model.Measure(c, p, sequences, c.Context, true), model.Measure(c, p, sequences, c.Context, false)
	weights, count := m.Bytes(), m.Count()
	keep, scratch := int64(max(train.Keep, eval.Keep)), max(int64(train.Temp), int64(eval.Temp), o.Scratch)
	tier, err := isa.Choose()
	if err != nil {
		tier = isa.Generic // who trains says what is wrong
	}
	layouts, kernels := m.AttentionBytes(func(h device.Heads, mask device.Mask) int {
		return flash.Scratch(tier, workers, p.Types().Activation, h, mask, true)
	})
	process := int64(processBytes)
	if workers == 0 {
		kernels, process = 0, 0
	}
	tokens := float64(sequences) * float64(c.Context)
	each := func(bytes int64) string {
		return fmt.Sprintf("%.2f bytes per parameter", float64(bytes)/float64(count))
	}
	return Estimate{
		{"parameters", weights, each(weights)},
		{"gradients", int64(train.Grads), each(int64(train.Grads))},
		{"optimizer state", o.State, o.Name + ", " + each(o.State)},
		{"tables", int64(train.Params) - weights, "rotary positions, FP8 scales"},
		{"activations", keep, fmt.Sprintf("%.1f KiB per token of the micro-batch", float64(keep)/tokens/1024)},
		{"scratch", scratch, "gradients of one block, logits of one chunk, or one update"},
		{"batch", int64(train.Batch), "tokens, targets, documents, losses"},
		{"attention", layouts + kernels, "gradients of keys and values for each worker, pattern layouts"},
		{"process", process, "binary, loader, packed blocks, stacks"},
	}
}
