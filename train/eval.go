package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"anneal/autograd"
	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/model"
	"anneal/parallel"
	"anneal/precision"
	"anneal/tensor"
)

// EvalResult measures how well a model predicts held-out text.
type EvalResult struct {
	Loss        float64 // mean nats per token
	BitsPerByte float64 // of text: comparable across tokenizers
	Tokens      int64   // targets scored
	Bytes       int64   // bytes of text that the targets encode

	// ByPosition splits the result by intervals of positions, each as long as a training row, if the rows are longer
	// than in training. The position of a token is the number of tokens before it in its document, or in its row
	// without a document mask.
	ByPosition []PositionResult

	// Sources splits the result by the sources of a mix that have a validation split; nil for a single source. The
	// combined measures cover all scored tokens, equally many from each source if it has enough, so they do not depend
	// on the weights of the mix.
	Sources []SourceResult

	// ActivationRMS is the root mean square of the residual stream of the first batch, after the embedding and after
	// each layer; nil where ranks share layers or rows.
	ActivationRMS []float64

	// Answers are counted if Evaluator.Answers is set.
	Answers Answers

	// Textless names the data sets whose validation split has no scored target that stands for text, because all text
	// is in prompts. They do not count in the other measures.
	Textless []string
}

// NoText returns an error that says what to do about the data sets of Textless.
func (r *EvalResult) NoText() error {
	return fmt.Errorf("no target in the validation split of %s stands for text: "+
		"all of the held-out text is in prompts, so there are no bits per byte\n"+
		"  hold out more with --val of `anneal data build`, or look at its --prompt-end",
		strings.Join(r.Textless, ", "))
}

// PositionResult measures the prediction of the tokens after positions [From, To).
type PositionResult struct {
	From        int     `json:"from"`
	To          int     `json:"to"`
	Loss        float64 `json:"loss"`
	BitsPerByte float64 `json:"bits_per_byte"`
	Tokens      int64   `json:"tokens"`
	Bytes       int64   `json:"bytes"`
}

// add counts a token. Until finish, Loss is a sum.
func (p *PositionResult) add(nats float64, bytes int32) {
	p.Loss += nats
	p.Tokens++
	p.Bytes += int64(bytes)
}

func (p *PositionResult) finish() {
	p.BitsPerByte = dataset.BitsPerByte(p.Loss, uint64(p.Bytes))
	p.Loss /= float64(p.Tokens)
}

// Unevaluated is the result without an evaluation.
var Unevaluated = EvalResult{Loss: math.NaN(), BitsPerByte: math.NaN()}

// Evaluator runs a model forward over samples of a data set. Within a run it shares the trainer's memory.
type Evaluator struct {
	dev       device.Device
	model     *model.Decoder
	*slot          // the current slot
	rows      int  // samples in a batch
	length    int  // tokens in a sequence: samples are cut into sequences
	Every     int  // positions in an interval of EvalResult.ByPosition; 0 for none
	documents bool // whether attention stops at document boundaries
	Exact     bool // a limit is an exact number of targets; else it is rounded up to whole samples
	Answers   bool // whether EvalResult.Answers are counted
	arenas    []*tensor.Arena
	world     comm.Comm // ranks that share the work
	mesh      *parallel.Mesh
	between   between
	chunks    []chunk
	ends      []int     // by unit: the number of the first parameter after it
	pipe      *pipeline // nil without one
	sizes     []float64 // by unit: root mean square of the stream after it; nil unless measured
	squares   device.Squares

	OnProgress func(done, total int64) // tokens scored by Evaluate; may be nil
}

// NewEvaluator allocates the memory for evaluating m.
func NewEvaluator(cfg *config.Config, p precision.Policy, dev device.Device, m *model.Decoder) (*Evaluator, error) {
	rows := cfg.Train.MicroBatch
	f := model.Measure(m.Config, p, rows, m.Config.Context, false)
	e := &Evaluator{
		dev: dev, model: m, rows: rows, length: m.Config.Context, documents: cfg.Data.DocumentMask,
		world: comm.Alone{}, mesh: parallel.Alone(), between: alone{}, slot: &slot{},
	}
	e.layChunks()
	arenas, err := newArenas(dev, []Part{
		{Activations, int64(f.Keep)}, {Scratch, int64(f.Temp)}, {Batch, int64(f.Batch)},
	})
	if err != nil {
		return nil, err
	}
	e.arenas = arenas
	e.tape = autograd.NewTape(dev, p.Types(), arenas[0], arenas[1])
	e.tape.Rounded = m.Copies()
	e.batch = model.NewBatch(arenas[2], p, rows, m.Config.Context)
	e.full = e.batch
	return e, nil
}

// Close frees the memory.
func (e *Evaluator) Close() { closeArenas(e.arenas) }

// load reads samples from src into the batch.
func (e *Evaluator) load(src dataset.Source, first uint64) error {
	if c := &e.model.Config; src.Context() != c.Context || src.Vocab() > c.Vocab {
		return &dataset.Error{Err: fmt.Errorf("the samples have %d tokens with ids below %d, "+
			"but the model reads rows of %d with ids below %d\n"+
			"  make the loader with the model's context, from data of its tokenizer",
			src.Context(), src.Vocab(), c.Context, c.Vocab)}
	}
	if err := src.Batch(&e.data, first, e.rows); err != nil {
		return &dataset.Error{Err: err}
	}
	fill(e.full, &e.data)
	e.full.Cut(e.model.Config.Context, e.length)
	e.full.SetPositions(e.documents)
	e.send()
	return nil
}

// send copies the rows on the host, or this rank's part of them, to the device.
func (e *Evaluator) send() {
	if e.full != e.batch {
		e.batch.Take(e.full.Host)
	}
	e.batch.Send(e.dev)
}

// Evaluate scores the first tokens of the validation split: the whole samples that hold limit tokens, or all if limit
// is 0. The choice does not depend on the batch size. Several sources get equal parts of the limit. Without a
// validation split both measures are NaN.
func (e *Evaluator) Evaluate(ctx context.Context, text dataset.HeldOut, limit int) (EvalResult, error) {
	context, sources := e.model.Config.Context, len(text.Splits)
	e.length = context
	var splits []heldOut
	all := int64(0) // tokens
	for i, s := range text.Splits {
		if s.Loader == nil {
			continue
		}
		h := heldOut{s.Loader, s.Name, s.Loader.Windows(), math.MaxInt64}
		switch {
		case limit > 0 && e.Exact:
			h.targets = (int64(limit) + int64(sources-1-i)) / int64(sources)
		case limit > 0:
			part := (limit + sources - 1) / sources
			h.samples = min(h.samples, uint64((part+context-1)/context))
		}
		if h.targets == 0 {
			continue // the limit is smaller than the number of sources
		}
		splits, all = append(splits, h), all+min(int64(h.samples)*int64(context), h.targets)
	}
	var r EvalResult // Loss is a sum until the end
	if e.world.Size() == e.mesh.Replicas {
		e.sizes = make([]float64, e.model.Units()+1)
		r.ActivationRMS = e.sizes
		defer func() { e.sizes = nil }()
	}
	for _, h := range splits {
		before := r
		if err := e.score(ctx, text.TokenBytes, h, all, &r); err != nil {
			return Unevaluated, err
		}
		if r.Bytes == before.Bytes {
			r = before
			r.Textless = append(r.Textless, h.Dir())
			continue
		}
		if nats, tokens, bytes := r.Loss-before.Loss, r.Tokens-before.Tokens, r.Bytes-before.Bytes; sources > 1 {
			r.Sources = append(r.Sources, SourceResult{
				h.name, Number(nats / float64(tokens)), Number(dataset.BitsPerByte(nats, uint64(bytes))), tokens, bytes,
			})
		}
	}
	if err := e.shareSizes(&r); err != nil {
		return Unevaluated, err
	}
	if err := Wait(e.dev); err != nil {
		return Unevaluated, err
	}
	if r.Tokens == 0 {
		none := Unevaluated
		none.Textless = r.Textless
		return none, nil
	}
	r.ByPosition = slices.DeleteFunc(r.ByPosition, func(p PositionResult) bool { return p.Bytes == 0 })
	for i := range r.ByPosition {
		r.ByPosition[i].finish()
	}
	r.BitsPerByte = dataset.BitsPerByte(r.Loss, uint64(r.Bytes))
	r.Loss /= float64(r.Tokens)
	return r, nil
}

// shareSizes gives all ranks the stream sizes of the first rank, which had the first batch.
func (e *Evaluator) shareSizes(r *EvalResult) error {
	if r.ActivationRMS == nil || e.world.Size() == 1 {
		return nil
	}
	all, err := e.shareFloats(r.ActivationRMS...)
	if err == nil {
		r.ActivationRMS = all[0]
	}
	return err
}

// rootMeanSquare returns the root mean square of the stream x [N, D].
func (e *Evaluator) rootMeanSquare(x *autograd.Var) float64 {
	return math.Sqrt(e.squares.Sum(e.dev, &x.Value) / float64(x.Value.Len()))
}

// Losses reads samples from src and returns them with the losses of their targets [N], until the next call.
func (e *Evaluator) Losses(src dataset.Source, first uint64) (*dataset.Batch, *tensor.Tensor, error) {
	if err := e.load(src, first); err != nil {
		return nil, nil, err
	}
	e.tape.Reset(false)
	e.model.Loss(e.tape, e.batch)
	losses := e.batch.HostLosses(e.dev)
	return &e.data, losses, Wait(e.dev)
}

// heldOut is the validation split of a source, with the number of its samples to score.
type heldOut struct {
	*dataset.Loader
	name    string
	samples uint64
	targets int64
}

// score adds the losses of a split to r; all is the number of tokens to score in all splits. Several ranks score one
// batch each at the same time and add all results in the order of the batches. If ctx ends on one rank, all stop.
func (e *Evaluator) score(ctx context.Context, bytes []int32, val heldOut, all int64, r *EvalResult) error {
	samples, end := val.samples, r.Tokens+min(val.targets, math.MaxInt64-r.Tokens)
	rank, ranks := uint64(e.mesh.Data), uint64(e.mesh.Replicas)
	for first := uint64(0); first < samples && r.Tokens < end; first += uint64(e.rows) * ranks {
		if err := ctx.Err(); err != nil && e.world.Size() == 1 {
			return err
		}
		if e.OnProgress != nil {
			e.OnProgress(r.Tokens, all)
		}
		n, err := e.take(val, first+rank*uint64(e.rows), end-r.Tokens)
		if err != nil {
			return err
		}
		mine, err := e.scoreBatch(bytes, n, val.EOT())
		e.sizes = nil // only the first batch is measured
		if err != nil {
			return err
		}
		if err := e.addScores(ctx, mine, r); err != nil {
			return err
		}
		if n > 0 {
			r.ByPosition = e.byPosition(r.ByPosition, bytes)
		}
	}
	return nil
}

// take reads the batch at sample at, if there is one, and returns how many of its targets count. The limit applies to
// the targets of all ranks' batches in order, so lower ranks use it up first.
func (e *Evaluator) take(val heldOut, at uint64, limit int64) (int64, error) {
	targets := 0
	if at < val.samples {
		if err := e.load(val, at); err != nil {
			return 0, err
		}
		e.ignoreFrom(val.samples - at)
		targets = e.data.Valid()
	}
	if val.targets < math.MaxInt64 && e.world.Size() > 1 {
		all, err := e.shareFloats(float64(targets))
		if err != nil {
			return 0, err
		}
		for r, before := range all {
			if at := e.mesh.At(r); at.Data < e.mesh.Data && at.Stage+at.Chunk+at.Cut == 0 {
				limit -= int64(before[0])
			}
		}
	}
	return max(min(int64(targets), limit), 0), nil
}

// batchScore is what a batch adds to a result.
type batchScore struct {
	nats   float64
	tokens int
	bytes  int
	Answers
}

// scoreBatch scores the given number of targets of the batch just read. If that is 0, it only takes part in the ranks'
// exchanges. end is the token that ends a text.
func (e *Evaluator) scoreBatch(bytes []int32, targets int64, end uint32) (batchScore, error) {
	if targets == 0 {
		return batchScore{}, e.loss(false)
	}
	e.ignoreAfter(targets)
	e.batch.Behind = e.Answers
	defer func() { e.batch.Behind = false }() // training shares the slot
	if err := e.loss(true); err != nil {
		return batchScore{}, err
	}
	if !e.mesh.Last() { // only the last stage has the losses
		return batchScore{}, nil
	}
	s := batchScore{nats: e.dev.Sum(&e.batch.Losses), tokens: e.data.Valid(), bytes: int(e.data.TextBytes(bytes))}
	if e.Answers {
		s.Answers = e.countAnswers(bytes, end)
	}
	return s, nil
}

// addScores adds the scores of all ranks to r, in rank order.
func (e *Evaluator) addScores(ctx context.Context, s batchScore, r *EvalResult) error {
	scores := [][]float64{{s.nats, float64(s.tokens), float64(s.bytes), 0}}
	for _, n := range s.counts() {
		scores[0] = append(scores[0], float64(*n))
	}
	if e.world.Size() > 1 {
		if ctx.Err() != nil {
			scores[0][3] = 1
		}
		var err error
		if scores, err = e.shareFloats(scores[0]...); err != nil {
			return err
		}
	}
	stopped := 0.0
	for rank, x := range scores {
		at := e.mesh.At(rank)
		if stopped += x[3]; at.Cut > 0 {
			continue // ranks of tensor parallelism all have the same losses
		}
		if r.Loss += x[0]; at.Chunk == 0 {
			r.Tokens += int64(x[1])
			r.Bytes += int64(x[2])
			for i, n := range r.Answers.counts() {
				*n += int64(x[4+i])
			}
		}
	}
	if stopped > 0 {
		return errors.Join(ctx.Err(), context.Canceled)
	}
	return nil
}

// ignoreFrom excludes the samples from row on from the loss; the last batch may be larger than the rest of the data.
func (e *Evaluator) ignoreFrom(row uint64) {
	if row >= uint64(e.rows) {
		return
	}
	rest := e.data.Targets[int(row)*e.full.T:]
	for i := range rest {
		rest[i] = dataset.Ignore
	}
	copy(e.full.Host.Targets, e.data.Targets)
	e.send()
}

// ignoreAfter excludes all but the given number of first targets of the batch from the loss.
func (e *Evaluator) ignoreAfter(targets int64) {
	if int64(e.data.Valid()) <= targets {
		return
	}
	for i, t := range e.data.Targets {
		if t == dataset.Ignore {
			continue
		}
		if targets--; targets < 0 {
			e.data.Targets[i] = dataset.Ignore
		}
	}
	copy(e.full.Host.Targets, e.data.Targets)
	e.send()
}

// byPosition adds the tokens of the batch to the intervals of their positions.
func (e *Evaluator) byPosition(sums []PositionResult, byteLen []int32) []PositionResult {
	if e.Every == 0 {
		return nil
	}
	losses := e.batch.HostLosses(e.dev)
	for i, target := range e.data.Targets {
		if target == dataset.Ignore {
			continue
		}
		at := int(e.batch.Host.Pos[i]) / e.Every
		for len(sums) <= at {
			sums = append(sums, PositionResult{From: len(sums) * e.Every, To: (len(sums) + 1) * e.Every})
		}
		sums[at].add(losses.Float64(i), byteLen[target])
	}
	return sums
}

// fill copies a batch of samples into the host memory of a model's batch.
func fill(dst *model.Batch, src *dataset.Batch) {
	for i, id := range src.Tokens {
		dst.Host.Tokens[i] = int32(id)
	}
	copy(dst.Host.Targets, src.Targets)
	copy(dst.Host.Start, src.DocStart)
}
