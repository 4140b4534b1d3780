package fasttext

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// TrainOptions are fastText's options for supervised models, with its names and defaults.
type TrainOptions struct {
	Dim           int     // size of the vectors: 100
	LR            float64 // initial learning rate, which falls linearly to 0: 0.1
	Epoch         int     // passes over the lines: 5
	MinCount      int     // rarer words are dropped: 1
	MinCountLabel int     // rarer labels are dropped: 0
	WordNgrams    int     // longest word n-gram: 1
	MinN, MaxN    int     // lengths of character n-grams: 0 and 0, none
	Bucket        int     // rows for n-grams, if there are any: 2,000,000
	Loss          Loss    // Softmax
	Neg           int     // negative labels per example, for NegativeSampling: 5
	Seed          uint64

	Threads   int                     // 0 uses all processors; the result is the same
	Available int64                   // bytes of free memory; 0 if unknown
	Progress  func(done, total int64) // counts bytes, over the counting pass and all epochs; may be nil
}

// DefaultTrainOptions returns the defaults of the original.
func DefaultTrainOptions() TrainOptions {
	return TrainOptions{Dim: 100, LR: 0.1, Epoch: 5, MinCount: 1, WordNgrams: 1, Bucket: 2_000_000, Loss: Softmax, Neg: 5}
}

// Check returns an error if the options are invalid.
func (o TrainOptions) Check() error {
	_, err := o.args()
	return err
}

func (o *TrainOptions) args() (args, error) {
	if o.WordNgrams <= 1 && o.MaxN <= 0 {
		o.Bucket = 0
	}
	for _, n := range []struct {
		name     string
		v, least int
	}{
		{"dim", o.Dim, 1}, {"epoch", o.Epoch, 1}, {"minCount", o.MinCount, 0}, {"minCountLabel", o.MinCountLabel, 0}, {"wordNgrams", o.WordNgrams, 0},
		{"minn", o.MinN, 0}, {"maxn", o.MaxN, 0}, {"bucket", o.Bucket, 0}, {"neg", o.Neg, 0},
	} {
		if n.v < n.least || n.v > math.MaxInt32 {
			return args{}, fmt.Errorf("%s = %d is out of range\n  try %d or more", n.name, n.v, n.least)
		}
	}
	if !(o.LR > 0 && o.LR <= 100) {
		return args{}, fmt.Errorf("lr = %v is not a valid learning rate\n  try 0.1", o.LR)
	}
	if o.MaxN > 0 && o.MinN > o.MaxN {
		return args{}, fmt.Errorf("minn = %d is above maxn = %d\n  try minn 2 and maxn 4", o.MinN, o.MaxN)
	}
	a := args{
		Dim: int32(o.Dim), Window: 5, Epoch: int32(o.Epoch), MinCount: int32(o.MinCount), Neg: int32(o.Neg), WordNgrams: int32(o.WordNgrams),
		Loss: o.Loss, Model: supervised, Bucket: int32(o.Bucket), MinN: int32(o.MinN), MaxN: int32(o.MaxN), LRUpdateRate: 100, T: 1e-4,
	}
	return a, a.check()
}

// ErrDiverged says that the weights overflowed during training.
var ErrDiverged = errors.New("training diverged: the weights overflowed\n  try a smaller learning rate")

const (
	batchLines  = 64      // lines per batch, at most; they see the same input vectors
	batchBytes  = 1 << 20 // a batch ends with the line that reaches this size
	maxLineRows = 1 << 18 // rows of a line that are used in training
	maxParallel = 64      // threads that a batch can keep busy
)

// Train learns a model from lines in fastText's format: words, with labels such as __label__good before or between
// them. The token </s> also ends a line. Lines without a label only count for the dictionary. The model depends on
// the lines and the options, not on the number of threads.
//
// Differences from the original:
//
//   - The original's threads update one model without synchronisation (Hogwild), so that two runs differ. Here a
//     batch of 64 lines or 1 MiB reads the same input vectors in parallel. The output matrix is then updated line by
//     line in order, and each input row receives its updates in that order.
//   - The lines are shuffled anew for each epoch.
//   - The learning rate falls with the bytes read, not with the tokens.
//   - All input vectors start at random; one thread of the original leaves nine in ten at 0.
//   - At most the first MiB and 262,144 rows of a line are used.
//
// Train reads the lines from the file in random order, which is fast if the operating system keeps the file in
// memory.
//
// Memory: the vectors, 16 bytes per line, about 70 bytes per entry of the dictionary while it is built, and up to 128
// MiB. If the vectors need more than TrainOptions.Available, the error is a *machine.RoomError.
func Train(ctx context.Context, lines io.ReaderAt, size int64, o TrainOptions) (*Model, error) {
	a, err := o.args()
	if err != nil {
		return nil, err
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	var v vocabulary
	if err := v.scan(ctx, io.NewSectionReader(lines, 0, size), func(at int64) { o.Progress(at, size*int64(1+o.Epoch)) }); err != nil {
		return nil, err
	}
	d := v.dictionary(&a, o.MinCountLabel)
	labels := len(d.words) - d.nwords
	switch {
	case len(v.lines) == 0:
		return nil, fmt.Errorf("no line has a label\n  try lines such as: %sgood the text of a document", LabelPrefix)
	case labels < 2:
		return nil, fmt.Errorf("a classifier needs two labels that occur at least %d times, but there are %d\n  try adding examples of another label", max(o.MinCountLabel, 1), labels)
	case d.nwords == 0:
		return nil, fmt.Errorf("no word occurs at least %d times\n  try a smaller minCount", o.MinCount)
	case int64(d.nwords)+int64(a.Bucket) > math.MaxInt32:
		return nil, fmt.Errorf("%d words and %d buckets need more than 2³¹ rows\n  try a larger minCount", d.nwords, a.Bucket)
	}
	if err := o.room(d.nwords, labels); err != nil {
		return nil, err
	}
	input := matrix{rows: d.nwords + o.Bucket, cols: o.Dim}
	output := matrix{rows: labels, cols: o.Dim, dense: make([]float32, labels*o.Dim)}
	input.dense = make([]float32, input.rows*input.cols)
	m := newModel(a, d, input, output)
	d.args = &m.args
	t := &trainer{m: m, o: o, source: lines, size: v.bytes * int64(o.Epoch), before: size}
	t.start()
	for epoch := range o.Epoch {
		rng := rand.New(rand.NewPCG(o.Seed, uint64(epoch)))
		rng.Shuffle(len(v.lines), func(i, j int) { v.lines[i], v.lines[j] = v.lines[j], v.lines[i] })
		for left := v.lines; len(left) > 0; {
			n := batchSize(left)
			if err := t.batch(ctx, left[:n]); err != nil {
				return nil, err
			}
			left = left[n:]
		}
	}
	for _, weights := range [][]float32{m.input.dense, m.output.dense} {
		for _, w := range weights {
			if !(w >= -maxWeight && w <= maxWeight) {
				return nil, ErrDiverged
			}
		}
	}
	return m, nil
}

// trainer updates the model line by line.
type trainer struct {
	m       *Model
	o       TrainOptions
	source  io.ReaderAt
	size    int64  // bytes of all epochs
	done    int64  // bytes read so far, of size
	before  int64  // bytes of the counting pass
	drawn   uint64 // lines so far; it seeds the random draws of each line
	slots   [batchLines]example
	scores  []float32
	weights []float64 // cumulative weights for drawing negative labels
	shards  [][]int32
}

// example is a line with its rows, labels and vectors.
type example struct {
	text         []byte
	rows, labels []int32
	hidden, grad []float32
	running      wordGrams
	word         []byte
	err          error
}

// start fills the input vectors with values drawn uniformly from ±1/dim, seeded by the row number.
func (t *trainer) start() {
	dim := t.o.Dim
	var next atomic.Int64
	const chunk = 1 << 12
	t.parallel(func(int) {
		var pcg rand.PCG
		for from := int(next.Add(chunk)) - chunk; from < t.m.input.rows; from = int(next.Add(chunk)) - chunk {
			for row := from; row < min(from+chunk, t.m.input.rows); row++ {
				pcg.Seed(^t.o.Seed, uint64(row))
				for i := range dim {
					t.m.input.dense[row*dim+i] = (float32(pcg.Uint64()>>40)/(1<<23) - 1) / float32(dim)
				}
			}
		}
	})
	for i := range t.slots {
		t.slots[i].hidden, t.slots[i].grad = make([]float32, dim), make([]float32, dim)
	}
	t.scores = make([]float32, t.m.output.rows)
	sum := 0.0
	for _, n := range t.m.dict.counts[t.m.dict.nwords:] {
		sum += math.Sqrt(float64(n))
		t.weights = append(t.weights, sum)
	}
	t.shards = make([][]int32, t.threads())
}

func (t *trainer) threads() int { return min(t.o.Threads, maxParallel) }

// parallel runs do on each thread.
func (t *trainer) parallel(do func(thread int)) {
	if t.threads() == 1 {
		do(0)
		return
	}
	var group sync.WaitGroup
	for i := range t.threads() {
		group.Go(func() { do(i) })
	}
	group.Wait()
}

func batchSize(lines []line) (n int) {
	for bytes := 0; n < min(batchLines, len(lines)) && bytes < batchBytes; n++ {
		bytes += int(lines[n].size)
	}
	return n
}

// batch trains on some lines.
func (t *trainer) batch(ctx context.Context, lines []line) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var next atomic.Int64
	t.parallel(func(int) {
		for i := int(next.Add(1)) - 1; i < len(lines); i = int(next.Add(1)) - 1 {
			t.slots[i].read(t.m, t.source, lines[i])
		}
	})
	lr := float32(t.o.LR * (1 - float64(t.done)/float64(t.size)))
	loss := float32(0)
	for i := range lines {
		e := &t.slots[i]
		if e.err != nil {
			return e.err
		}
		t.drawn++
		if len(e.rows) > 0 && len(e.labels) > 0 {
			loss += t.learn(e, lr)
		}
		t.done += int64(lines[i].size)
	}
	if loss != loss || math.IsInf(float64(loss), 0) {
		return ErrDiverged
	}
	t.parallel(func(thread int) {
		for i := range lines {
			if e := &t.slots[i]; len(e.labels) > 0 {
				addToRows(t.m.input.dense, e.grad, t.shard(thread, e.rows))
			}
		}
	})
	t.o.Progress(t.before+t.done, t.before+t.size)
	return nil
}

// shard returns the rows that belong to a thread, in order.
func (t *trainer) shard(thread int, rows []int32) []int32 {
	if t.threads() == 1 {
		return rows
	}
	mine := slices.Grow(t.shards[thread][:0], len(rows))[:len(rows)]
	n, threads := 0, uint64(t.threads())
	for _, r := range rows {
		mine[n] = r
		if owner := uint64(uint32(r)*2654435769) * threads >> 32; owner == uint64(thread) {
			n++
		}
	}
	t.shards[thread] = mine
	return mine[:n]
}

// read finds the rows and labels of a line, and its hidden vector.
func (e *example) read(m *Model, source io.ReaderAt, l line) {
	e.text = slices.Grow(e.text[:0], int(l.size))[:l.size]
	if _, err := source.ReadAt(e.text, l.at); err != nil && !errors.Is(err, io.EOF) {
		e.err = err
		return
	}
	e.rows, e.labels = e.rows[:0], e.labels[:0]
	e.running.reset()
	d := m.dict
	for i := 0; len(e.rows) < maxLineRows; {
		start, end := nextToken(e.text, i)
		token := e.text[start:end]
		last := len(token) == 0 || string(token) == endOfLine
		if last {
			token = []byte(endOfLine)
		}
		hash := hashToken(token)
		switch id := d.find(token, hash); {
		case !d.isLabel(token, id):
			e.token(d, token, id)
			e.rows = e.running.push(d, e.rows, hash)
		case id >= 0:
			e.labels = append(e.labels, int32(id-d.nwords))
		}
		if last {
			break
		}
		i = end
	}
	clear(e.hidden)
	m.input.sum(e.hidden, e.rows)
	scale := float32(1 / float64(len(e.rows)))
	for i := range e.hidden {
		e.hidden[i] *= scale
	}
}

// token appends the rows of a word and its character n-grams.
func (e *example) token(d *dictionary, token []byte, id int) {
	if id >= 0 {
		e.rows = append(e.rows, int32(id))
	}
	if d.args.MaxN <= 0 || string(token) == endOfLine {
		return
	}
	e.word = appendBounded(e.word[:0], token)
	for at := 0; at < len(e.word) && len(e.rows) < maxLineRows; {
		e.rows = slices.Grow(e.rows, 2*maxNgram)
		e.rows, at = d.charGrams(e.rows, e.word, at)
	}
}
