package device

import (
	"strings"
	"time"

	"anneal/tensor"
)

// A Recorder is a device that records each kernel call and passes it on to the device below. Over Null it shows which
// kernels a computation calls. Over a real device that computes within the call, it also shows how long each call
// takes. Equal calls are counted, not listed.
type Recorder struct {
	Device
	Phase  string  // purpose of the following calls
	Action any     // the instruction of a pipeline that they belong to; nil for none
	Times  float64 // how often each following call counts
	Timed  bool    // whether the time of calls is recorded

	// Pairs returns the mean number of pairs of query and key in the same document, in a row of length tokens. Nil
	// means that each row is one document.
	Pairs func(length int) float64

	Calls map[Noted]*Tally

	visible map[*Layout]map[int]float64 // visible pairs of a layout, by length of a row
	noted   Noted
	began   time.Time
}

// Noted is a call and its purpose.
type Noted struct {
	Phase  string
	Action any // comparable
	Call
}

// A Call holds everything about a kernel call that decides how long it takes, except the machine.
type Call struct {
	Kernel string `json:"kernel"` // the method of Device; "MatMul nt" for a product, by its form
	// Types is the storage of its tensors, in order: "bf16 bf16 f32". For a product they are dst, with + if the
	// product is added to it, a, b and the operands' format.
	Types string `json:"types"`
	M     int    `json:"m,omitempty"`
	N     int    `json:"n,omitempty"` // M, N and K of a product; of attention M = tokens, N = heads, K = size of a head
	K     int    `json:"k,omitempty"`
	// Ops counts the multiplications and additions of a product or of attention; 0 for kernels bound by memory.
	Ops   float64 `json:"ops,omitempty"`
	Bytes float64 `json:"bytes"` // of the tensors, each once; of a table, the rows that are used
}

// A Tally holds the count and the times of equal calls.
type Tally struct {
	Count   float64
	Seconds []float64 // of each, if the recorder is timed
}

// NewRecorder returns a recorder over a device.
func NewRecorder(d Device) *Recorder {
	return &Recorder{
		Device: d, Times: 1, Calls: map[Noted]*Tally{}, visible: map[*Layout]map[int]float64{},
	}
}

// begin records a call from the arguments of a kernel.
func (r *Recorder) begin(kernel string, args ...any) {
	r.noted = Noted{r.Phase, r.Action, r.describe(kernel, args)}
	if r.Timed {
		r.began = time.Now()
	}
}

// end counts the current call.
func (r *Recorder) end() {
	took := 0.0
	if r.Timed {
		took = time.Since(r.began).Seconds()
	}
	t := r.Calls[r.noted]
	if t == nil {
		t = &Tally{}
		r.Calls[r.noted] = t
	}
	t.Count += r.Times
	if r.Timed {
		t.Seconds = append(t.Seconds, took)
	}
}

// describe makes a Call from a kernel's arguments.
func (r *Recorder) describe(kernel string, args []any) Call {
	c := Call{Kernel: kernel}
	var types []string
	var tensors []*tensor.Tensor // those that are there
	take := func(t *tensor.Tensor) {
		if !t.IsZero() {
			tensors = append(tensors, t)
			types = append(types, t.DType().String())
			c.Bytes += float64(t.Bytes())
		}
	}
	for _, a := range args {
		switch a := a.(type) {
		case *tensor.Tensor:
			take(a)
		case []*tensor.Tensor:
			for i, t := range a {
				if c.Bytes += float64(t.Bytes()); i == 0 {
					types = append(types, t.DType().String())
				}
			}
		}
	}
	for _, a := range args {
		switch a := a.(type) {
		case Form:
			c.Kernel += " " + a.String()
			c.product(tensors, a)
		case MatMulOptions:
			types = append(types[:3], a.Operand.String())
			if a.Accumulate {
				types[0] = "+" + types[0]
			}
			if a.Symmetric {
				c.Kernel += " symmetric"
				c.Ops /= 2
			}
		case Heads:
			c.M, c.N, c.K = tensors[0].Rows(), a.Q, a.Size
		case Mask:
			c.Ops = r.attention(&c, a)
		case Runs:
			size := float64(a.Count * a.Rows * a.Cols)
			c.Bytes = size * float64(tensors[0].DType().Size()+tensors[1].DType().Size())
		}
	}
	c.ofTables(tensors)
	c.Types = strings.Join(types, " ")
	return c
}

// product records the sizes of a product.
func (c *Call) product(t []*tensor.Tensor, form Form) {
	dst, a := t[0], t[1]
	c.M, c.N, c.K = dst.Rows(), dst.Cols(), a.Cols()
	if form == TN {
		c.K = a.Rows()
	}
	c.Ops = 2 * float64(c.M) * float64(c.N) * float64(c.K)
}

// attention counts the operations of attention on visible pairs of query and key.
func (r *Recorder) attention(c *Call, m Mask) float64 {
	perPair := 4.0
	if strings.HasSuffix(c.Kernel, "Grad") {
		perPair = 10
	}
	rows := float64(c.M / m.Len)
	if strings.HasPrefix(c.Kernel, "Linear") {
		return perPair * float64(c.M) * float64(c.N) * float64(c.K) * float64(c.K)
	}
	pairs := float64(m.Len) * float64(m.Len+1) / 2 * float64(c.N)
	if m.Start != nil && r.Pairs != nil {
		pairs = r.Pairs(m.Len) * float64(c.N)
	}
	if m.Layout != nil {
		pairs = min(pairs, r.pairs(m.Layout, m.Len, c.N))
	}
	return perPair * rows * pairs * float64(c.K)
}

// pairs returns how many pairs of query and key the heads of a layout see in a row.
func (r *Recorder) pairs(l *Layout, length, heads int) float64 {
	if n, known := r.visible[l][length]; known {
		return n
	}
	total, of := 0.0, map[*Graph]float64{}
	for h := range heads {
		g := l.Of(h)
		if _, known := of[g]; !known {
			of[g] = g.visible(length)
		}
		total += of[g]
	}
	if r.visible[l] == nil {
		r.visible[l] = map[int]float64{}
	}
	r.visible[l][length] = total
	return total
}

// visible counts the pairs of query and key of a row.
func (g *Graph) visible(length int) float64 {
	n := 0
	for i := range g.Blocks {
		q := &g.Blocks[i].Queries
		for k := range q.Count {
			at := q.First + k*q.Step
			if at >= length {
				break
			}
			for _, keys := range g.Blocks[i].Keys {
				n += keys.seenBy(at)
			}
		}
	}
	return float64(n)
}

// seenBy counts the keys of a range that query i sees: j with Near ≤ i−j < Far.
func (k *KeyRange) seenBy(i int) int {
	upTo := func(last int) int { // keys of the range at or before a position
		if last < k.First {
			return 0
		}
		return min(k.Count, (last-k.First)/k.Step+1)
	}
	return max(0, upTo(i-k.Near)-upTo(i-k.Far))
}

// ofTables corrects the bytes of kernels that use a few rows of a table.
func (c *Call) ofTables(t []*tensor.Tensor) {
	switch c.Kernel {
	case "Embedding": // x, table, ids
		c.Bytes += float64(t[0].Len()*t[1].DType().Size() - t[1].Bytes())
	case "EmbeddingGrad": // dtable, dx, ids
		c.Bytes += float64(2*t[1].Len()*t[0].DType().Size() - t[0].Bytes())
	case "AddValues": // qkv, table, weight, ids
		c.Bytes += float64(t[3].Len()*t[1].Cols()*t[1].DType().Size() - t[1].Bytes())
	case "AddValuesGrad": // dtable, dweight, dqkv, table, weight, ids
		rows := t[5].Len() * t[3].Cols()
		c.Bytes += float64(rows*(2*t[0].DType().Size()+t[3].DType().Size()) - t[0].Bytes() - t[3].Bytes())
	}
}
