package train

import (
	"slices"

	"anneal/autograd"
	"anneal/dataset"
	"anneal/model"
	"anneal/tensor"
)

// A Continuation says how prompts are continued.
type Continuation struct {
	Tokens int   // the most tokens to generate
	End    int32 // generation stops at this token and leaves it out; negative for none
	model.Sampling
}

// Continue continues prompts of at least one token, each by itself, up to the model's context. Every token takes a
// forward pass of all prompts, without a cache, in the evaluator's memory: use it to look at a model in training, not
// to generate long texts. Several ranks all compute the same. Ranks that share layers or rows cannot continue prompts
// (validate refuses that).
func (e *Evaluator) Continue(prompts [][]int32, c Continuation) (made [][]int32, err error) {
	for group := range slices.Chunk(prompts, e.rows) {
		more, err := e.continueRows(group, c)
		if err != nil {
			return nil, err
		}
		made = append(made, more...)
	}
	return made, nil
}

// Continue is Evaluator.Continue. Schedule-free AdamW generates with its average.
func (t *Trainer) Continue(prompts [][]int32, c Continuation) (made [][]int32, err error) {
	if !isScheduleFree(t.cfg.Optimizer) {
		return t.Evaluator.Continue(prompts, c)
	}
	err = t.at(t.trained, func() (err error) {
		made, err = t.Evaluator.Continue(prompts, c)
		return err
	})
	return made, err
}

// continueRows continues as many prompts as a batch has rows, or fewer.
func (e *Evaluator) continueRows(prompts [][]int32, c Continuation) ([][]int32, error) {
	batch, rows, documents := e.batch, e.rows, e.documents
	batch.Cut(e.model.Config.Context, e.model.Config.Context) // a step may have left shorter rows
	defer func() { e.batch, e.full, e.rows, e.documents = batch, batch, rows, documents }()
	e.batch = batch.Rows(len(prompts))
	e.full, e.rows, e.length, e.documents = e.batch, len(prompts), e.model.Config.Context, true
	src := texts{ids: make([][]int32, len(prompts)), ended: make([]bool, len(prompts)), of: e.model.Config}
	made := make([][]int32, len(prompts))
	for i, p := range prompts {
		src.ids[i] = slices.Clone(p[max(0, len(p)-e.length+1):])
	}
	var sampler model.Sampler
	for range c.Tokens {
		if !slices.Contains(src.ended, false) {
			break
		}
		logits, err := e.nextLogits(src)
		if err != nil {
			return nil, err
		}
		for i, ids := range src.ids {
			if src.ended[i] {
				continue
			}
			row := logits.Slice(0, 1)
			*logits = logits.Slice(1, logits.Rows())
			id := sampler.Next(&row, ids, c.Sampling)
			if src.ended[i] = id == c.End || len(ids) == e.length; id != c.End {
				made[i] = append(made[i], id)
			}
			if !src.ended[i] {
				src.ids[i] = append(ids, id)
			}
		}
	}
	return made, nil
}

// nextLogits returns the next-token logits [R, V] of the texts that have not ended, in host memory.
func (e *Evaluator) nextLogits(src texts) (*tensor.Tensor, error) {
	if err := e.load(src, 0); err != nil {
		return nil, err
	}
	var logits tensor.Tensor
	err := e.read(true, func(h *autograd.Var) { logits = *e.model.NextLogits(e.tape, h, e.batch) })
	if err != nil {
		return nil, err
	}
	return &logits, Wait(e.dev)
}

// texts are rows of one text each, followed by padding. The last token of a text has a target unless the text has
// ended.
type texts struct {
	ids   [][]int32
	ended []bool
	of    model.Config
}

func (x texts) Context() int { return x.of.Context }
func (x texts) Vocab() int   { return x.of.Vocab }

// Batch fills b with all texts.
func (x texts) Batch(b *dataset.Batch, _ uint64, rows int) error {
	b.Resize(rows, x.of.Context)
	for r, ids := range x.ids {
		at := r * x.of.Context
		for i, id := range ids {
			b.Tokens[at+i], b.Targets[at+i], b.DocStart[at+i] = uint32(id), dataset.Ignore, 0
		}
		if !x.ended[r] {
			b.Targets[at+len(ids)-1] = 0
		}
		b.Pad(r, len(ids), 0)
	}
	return nil
}
