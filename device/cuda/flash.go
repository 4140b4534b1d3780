//go:build cuda && linux

package cuda

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"anneal/device"
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// Attention has two paths with the same tiles of keys in the same order: tensor cores, for BF16 and F16 with head
// sizes of up to 128 that are multiples of 8, and plain arithmetic for everything else.

// attentionTables holds the tables of attention on the card.
type attentionTables struct {
	plans  map[*device.Layout]*plan
	slopes []slopeTable
}

// A slopeTable holds ALiBi's slopes in units of log 2.
type slopeTable struct {
	slopes []float64
	wide   bool
	at     driver.Pointer
}

// flash is derived from the arguments of a call of attention.
type flash struct {
	device.Heads
	storage      tensor.DType
	tokens, rows int // N, N/T
	length, from int // of a row; the first position with queries, 0 unless there is a cache
	ring         int // rows of the cache; 0 without a cache
	start        *tensor.Tensor
	plan         *plan
	slopes       driver.Pointer
	sinks        *tensor.Tensor
	scale        float64
	cores        bool // tensor cores
}

// newFlash checks a call for the queries of rows at positions from … until−1.
func (d *Device) newFlash(op string, qkv *tensor.Tensor, heads device.Heads, mask device.Mask, until, from int) flash {
	if heads.KV <= 0 || heads.Q%heads.KV != 0 {
		panic(fmt.Sprintf("cuda: %s: %d key-value heads do not divide %d query heads", op, heads.KV, heads.Q))
	}
	n := qkv.Rows()
	if until <= from || n%(until-from) != 0 {
		panic(fmt.Sprintf("cuda: %s: %d tokens are not a multiple of the row length %d", op, n, until-from))
	}
	shape(op, "qkv", qkv, n, heads.Cols())
	storage(op, "qkv", qkv, arithmetic(qkv))
	if l := mask.Layout; l != nil && (l.Len < until || l.Head != nil && len(l.Head) != heads.Q) {
		panic(fmt.Sprintf("cuda: %s: a layout for rows of %d and %d heads, want %d and %d",
			op, l.Len, len(l.Head), until, heads.Q))
	}
	if mask.Slopes != nil && len(mask.Slopes) != heads.Q {
		panic(fmt.Sprintf("cuda: %s: %d slopes for %d heads", op, len(mask.Slopes), heads.Q))
	}
	f := flash{
		Heads: heads, storage: qkv.DType(), tokens: n, rows: n / (until - from), length: until, from: from,
		start: mask.Start, sinks: mask.Sinks,
	}
	f.scale = math.Log2E * heads.ScoreScale()
	f.plan = d.planOf(mask.Layout)
	f.slopes = d.slopes(mask.Slopes, f.storage == tensor.F64)
	narrow := f.storage == tensor.BF16 || f.storage == tensor.F16
	f.cores = narrow && heads.Size%8 == 0 && heads.Size <= 128
	if heads.FP8 && f.storage != tensor.BF16 {
		panic(fmt.Sprintf("cuda: %s: FP8 probabilities with qkv %v, want BF16", op, qkv))
	}
	if heads.Softcap > 0 && mask.Slopes != nil {
		panic(fmt.Sprintf("cuda: %s: a soft-cap of scores with slopes", op))
	}
	if mask.Sinks != nil {
		dtype(op, "mask.Sinks", mask.Sinks, arithmetic(qkv))
		length(op, "mask.Sinks", mask.Sinks, heads.Q)
	}
	if mask.Start != nil {
		dtype(op, "mask.Start", mask.Start, tensor.I32)
		length(op, "mask.Start", mask.Start, n)
	}
	return f
}

// slopes returns the table of slopes on the card; equal slopes share a table.
func (d *Device) slopes(slopes []float64, wide bool) driver.Pointer {
	if slopes == nil {
		return 0
	}
	known := &d.attention.slopes
	for i := range *known {
		if t := &(*known)[i]; t.wide == wide && slices.Equal(t.slopes, slopes) {
			return t.at
		}
	}
	var data []byte
	for _, s := range slopes {
		s *= math.Log2E
		if wide {
			data = append(data, bytesOf([]float64{s})...)
		} else {
			data = append(data, bytesOf([]float32{float32(s)})...)
		}
	}
	at := d.keep("slopes of attention", data)
	*known = append(*known, slopeTable{slices.Clone(slopes), wide, at})
	return at
}

// limit returns the limit of the soft-cap for products q·k, or 0 without a soft-cap.
func (f *flash) limit() float64 { return f.Softcap / f.ScoreScale() }

// group returns the number of query heads per key-value head.
func (f *flash) group() int { return f.Q / f.KV }

// size returns the bytes of a number of arithmetic.
func (f *flash) size() int {
	if f.storage == tensor.F64 {
		return 8
	}
	return 4
}

// keyCol and valueCol return the first columns of keys and values in qkv.
func (f *flash) keyCol() int   { return f.Q * f.Heads.Size }
func (f *flash) valueCol() int { return (f.Q + f.KV) * f.Heads.Size }

// unitTiles and tileTiles return the number of tiles of 64 rows for the separate results of units, or of tiles of
// keys for each query head.
func (f *flash) unitTiles() int { return f.rows * f.Q / len(f.plan.graphs) * f.plan.planUnits }
func (f *flash) tileTiles() int { return f.rows * f.Q / len(f.plan.graphs) * f.plan.planTiles }

// apartQueries and apartKeys report whether blocks store their results for queries, or for keys, separately.
func (f *flash) apartQueries() bool { return f.plan != nil && f.plan.overlap }
func (f *flash) apartKeys() bool {
	return f.plan != nil && (f.plan.shared || len(f.plan.graphs) > 1 && f.group() > 1)
}

// pieces returns the bytes of a row of a tile in shared memory on tensor cores.
func (f *flash) pieces() int { return 2 * ((f.Heads.Size+15)/16*16 + 8) }

// plainRows returns the number of rows of a block of plain arithmetic and its shared memory, which holds own vectors
// for each row of the block and others vectors for each of the 32 other rows. It chooses as many rows as allow two
// blocks on a multiprocessor with 164 KiB.
func (f *flash) plainRows(own, others int) (rows, shared int) {
	row := (f.Heads.Size | 1) * f.size()
	for rows = 32; ; rows /= 2 {
		shared = (rows*own + 32*others) * row
		if shared <= 80<<10 || rows == 4 {
			return rows, shared
		}
	}
}

// beginFlash starts a kernel of attention with its compile-time choices. rows is the number of queries, or keys, of a
// block; with apart, blocks store their results separately.
func (d *Device) beginFlash(f *flash, file, name string, rows int, apart bool) *call {
	layout := define{"LAYOUT", digit(f.plan != nil)}
	if !f.cores {
		return d.begin(file, name, f.storage, layout, define{"WARPS", numeral(rows / 4)},
			define{"COLUMNS", numeral(ceilDiv(f.Heads.Size, 32))})
	}
	return d.begin(file, name, f.storage, layout, define{"E", numeral(f.Heads.Size)}, define{"ROWS", numeral(rows)},
		define{"SLOPES", digit(f.slopes != 0)}, define{"CAPS", digit(f.Softcap > 0)},
		define{"CACHED", digit(f.ring > 0)}, define{"PARTIAL", digit(apart)})
}

// numerals holds numbers as text, so that calls do not allocate.
var numerals = func() (n [129]string) {
	for i := range n {
		n[i] = strconv.Itoa(i)
	}
	return n
}()

func numeral(n int) string {
	if n < len(numerals) {
		return numerals[n]
	}
	return strconv.Itoa(n)
}

func digit(x bool) string {
	if x {
		return "1"
	}
	return "0"
}

// column adds a pointer to column c of a matrix.
func (c *call) column(t *tensor.Tensor, col int) {
	c.pointer(driver.Pointer(uintptr(t.Pointer()) + uintptr(col*t.DType().Size())))
}

// optional adds a pointer to a tensor that may be nil.
func (c *call) optional(t *tensor.Tensor) {
	if t == nil {
		c.pointer(0)
		return
	}
	c.tensor(t)
}

// planned adds a plan, which may be nil, in the form of the macro PLAN of flash.cuh.
func (c *call) planned(p *plan) {
	if p == nil {
		for range 8 {
			c.word(0)
		}
		return
	}
	for _, at := range p.at[:7] {
		c.pointer(p.memory + driver.Pointer(at))
	}
	c.int(len(p.graphs))
}

// slotsAt returns the address of a plan's lists of slots.
func (p *plan) slotsAt() driver.Pointer { return p.memory + driver.Pointer(p.at[7]) }

// Attention implements device.Device.
func (d *Device) Attention(out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	const op = "Attention"
	f := d.newFlash(op, qkv, heads, mask, mask.Len, 0)
	shape(op, "out", out, f.tokens, heads.Q*heads.Size)
	dtype(op, "out", out, f.storage)
	shape(op, "lse", lse, heads.Q, f.tokens)
	dtype(op, "lse", lse, arithmetic(qkv))
	d.forward(&f, out, lse, qkv, qkv, f.keyCol())
}

// forwardScratch returns the bytes of scratch memory of a forward pass: the results that blocks store separately, and
// their log-sum-exps.
func (f *flash) forwardScratch() int {
	if !f.apartQueries() {
		return 0
	}
	return f.unitTiles() * tileKeys * (f.Heads.Size + 1) * f.size()
}

// forward computes attention with keys and values from column keyCol of kv on. lse may be nil.
func (d *Device) forward(f *flash, out, lse, qkv, kv *tensor.Tensor, keyCol int) {
	var partial driver.Pointer
	numbers, planUnits := 0, 0
	if f.plan != nil {
		planUnits = f.plan.planUnits
	}
	if f.apartQueries() {
		numbers = f.unitTiles() * tileKeys * f.Heads.Size
		partial = d.scratch(f.forwardScratch())
	}
	file, name, threads := "flash_forward", "flash_forward", 128
	rows := f.queriesOfBlock(128)
	shared := (rows + 2*tileKeys) * f.pieces()
	if !f.cores {
		file, name = "flash_plain", "plain_forward"
		rows, shared = f.plainRows(1, 2)
		threads = rows * 8
	}
	c := d.beginFlash(f, file, name, rows, f.apartQueries())
	c.tensor(out)
	c.optional(lse)
	c.tensor(qkv)
	c.column(kv, keyCol)
	c.column(kv, keyCol+f.KV*f.Heads.Size)
	c.optional(f.start)
	c.pointer(f.slopes)
	c.optional(f.sinks)
	c.planned(f.plan)
	c.pointer(partial)
	c.pointer(partial + driver.Pointer(numbers*f.size()))
	c.int(planUnits)
	c.int(f.Q * f.Heads.Size)
	c.int(f.Cols())
	c.int(kv.Cols())
	c.int(f.length)
	c.int(f.from)
	c.int(f.ring)
	c.int(f.group())
	c.int(f.tokens)
	c.real(f.scale)
	c.real(f.limit())
	c.int(f.Heads.Size)
	c.bool(f.FP8)
	c.grid(f.blocks(rows), f.Q, f.rows, threads, shared)
	if !f.apartQueries() {
		return
	}
	c = d.begin("flash_join", "join_outputs", f.storage)
	c.tensor(out)
	c.optional(lse)
	c.optional(f.sinks)
	c.pointer(partial)
	c.pointer(partial + driver.Pointer(numbers*f.size()))
	c.pointer(f.plan.memory)
	c.pointer(f.plan.slotsAt())
	c.int(len(f.plan.graphs))
	c.int(planUnits)
	c.int(f.length)
	c.int(f.from)
	c.int(f.tokens)
	c.int(f.Heads.Size)
	c.grid(ceilDiv(f.length-f.from, 4), f.Q, f.rows, 128, 0)
}

// queriesOfBlock returns the number of queries of a block on tensor cores: 128 without a plan and for heads of up to
// widest elements.
func (f *flash) queriesOfBlock(widest int) int {
	if f.plan == nil && f.Heads.Size <= widest && f.length-f.from > tileKeys {
		return 2 * tileKeys
	}
	return tileKeys
}

// blocks returns the number of blocks of rows queries per head.
func (f *flash) blocks(rows int) int {
	if f.plan != nil {
		return f.plan.mostUnits * (tileKeys / rows)
	}
	return ceilDiv(f.length-f.from, rows)
}
