package plan

import (
	"fmt"
	"slices"

	"anneal/device"
	"anneal/device/cpu/flash"
	"anneal/internal/isa"
	"anneal/model"
	"anneal/precision"
)

// Item is one named part of a run's memory.
type Item struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Note  string `json:"note"` // a description, or how the size scales
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

// Bytes returns the size of the named part.
func (e Estimate) Bytes(name string) int64 {
	i := slices.IndexFunc(e, func(i Item) bool { return i.Name == name })
	return e[i].Bytes
}

// Fits reports whether the total fits in available bytes.
func (e Estimate) Fits(available int64) bool { return e.Total() <= available }

// Optimizer describes the cost of an optimizer.
type Optimizer struct {
	Name           string
	State, Scratch int64   // bytes kept between updates, and needed during one
	FLOPs          float64 // of an update, if they matter compared with training
}

// processBytes estimates the binary, the Go heap, the loader and the worker stacks, beside the arenas.
const processBytes = 32 << 20

// Memory predicts the peak memory of a training run: a model under a policy, with sequences of the context's length
// per micro-batch, workers on the CPU, and an optimizer. With no workers it is the memory of another device, except
// for that of its kernels.
//
// For each token a block keeps for backward: the inputs of its products, the divisors of its norms, queries, keys and
// values, attention's output, and one log-sum-exp per head. The residual stream and its gradient exist once. Layers
// in c.Recompute keep only what it allows. Results that are cheap to recompute are in scratch memory, like the
// gradients of one block or the logits of one chunk.
func Memory(c model.Config, p precision.Policy, sequences, workers int, o Optimizer) Estimate {
	m := model.Outline(c, p)
	train, eval := model.Measure(c, p, sequences, c.Context, true), model.Measure(c, p, sequences, c.Context, false)
	weights, count := m.Bytes(), m.Count()
	keep, scratch := int64(max(train.Keep, eval.Keep)), max(int64(train.Temp), int64(eval.Temp), o.Scratch)
	tier, err := isa.Choose()
	if err != nil {
		tier = isa.Generic // training reports the error
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
