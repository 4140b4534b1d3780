//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// AttentionGrad implements device.Device. It computes statistics of rows, then dQ in a pass over the keys of each
// query, then dK and dV in a pass over the queries of each key; both passes recompute the scores. Scratch holds 2
// numbers per token and head, and, if a pattern lists queries or keys several times, the results of its blocks.
func (d *Device) AttentionGrad(dqkv, dout, out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	const op = "AttentionGrad"
	heads.FP8 = false // the gradient ignores the rounding
	f := d.newFlash(op, qkv, heads, mask, mask.Len, 0)
	for _, t := range []struct {
		name string
		t    *tensor.Tensor
		cols int
	}{{"out", out, heads.Q * heads.Size}, {"dout", dout, heads.Q * heads.Size}, {"dqkv", dqkv, heads.Cols()}} {
		shape(op, t.name, t.t, f.tokens, t.cols)
		dtype(op, t.name, t.t, f.storage)
	}
	shape(op, "lse", lse, heads.Q, f.tokens)
	dtype(op, "lse", lse, arithmetic(qkv))

	stats := d.scratch(f.gradScratch())
	partial := stats + driver.Pointer(2*f.Q*f.tokens*f.size())

	d.flashStats(stats, dout, out, lse, heads)
	d.gradQueries(&f, dqkv, dout, qkv, stats, partial)
	d.gradKeys(&f, dqkv, dout, qkv, stats, partial)
}

// flashStats writes two statistics for each head of a token, which the gradient kernels read.
func (d *Device) flashStats(stats driver.Pointer, dout, out, lse *tensor.Tensor, heads device.Heads) {
	c := d.begin("flash_join", "flash_stats", out.DType())
	c.pointer(stats)
	c.tensor(dout)
	c.tensor(out)
	c.tensor(lse)
	c.int(heads.Q)
	c.int(out.Rows())
	c.int(heads.Size)
	c.launch(ceilDiv(out.Rows()*heads.Q, 16), 128, 0)
}

// AttentionSinksGrad implements device.Device. Scratch holds 2 numbers per token and head.
func (d *Device) AttentionSinksGrad(dsinks, dout, out, lse, sinks *tensor.Tensor, heads device.Heads) {
	const op = "AttentionSinksGrad"
	shape(op, "out", out, lse.Cols(), heads.Q*heads.Size)
	shape(op, "dout", dout, lse.Cols(), heads.Q*heads.Size)
	dtype(op, "dout", dout, out.DType())
	dtype(op, "lse", lse, arithmetic(out))
	for _, t := range []*tensor.Tensor{dsinks, sinks} {
		length(op, "sinks and their gradient", t, heads.Q)
		dtype(op, "sinks and their gradient", t, arithmetic(out))
	}
	f := flash{Heads: heads, storage: out.DType(), tokens: out.Rows()}
	stats := d.scratch(f.gradScratch())
	d.flashStats(stats, dout, out, lse, heads)
	c := d.begin("flash_join", "sinks_grad", out.DType())
	c.tensor(dsinks)
	c.tensor(sinks)
	c.pointer(stats)
	c.int(out.Rows())
	c.launch(heads.Q, 256, 0)
}

// gradScratch returns the bytes of scratch memory of AttentionGrad: two numbers per row and head, and the results that
// blocks store separately.
func (f *flash) gradScratch() int {
	room := 0
	if f.apartQueries() {
		room = f.unitTiles()
	}
	if f.apartKeys() {
		room = max(room, 2*f.tileTiles())
	}
	return (2*f.Q*f.tokens + room*tileKeys*f.Heads.Size) * f.size()
}

// gradQueries writes the query heads of dqkv.
func (d *Device) gradQueries(f *flash, dqkv, dout, qkv *tensor.Tensor, stats, partial driver.Pointer) {
	planUnits := 0
	if f.plan != nil {
		planUnits = f.plan.planUnits
	}
	if !f.apartQueries() {
		partial = 0
	}
	file, name, threads := "flash_queries", "flash_queries", 128
	rows := f.queriesOfBlock(64)
	shared := 4 * tileKeys * f.pieces()
	if !f.cores {
		file, name = "flash_plain", "plain_queries"
		rows, shared = f.plainRows(2, 2)
		threads = rows * 8
	}
	c := d.beginFlash(f, file, name, rows, f.apartQueries())
	c.tensor(dqkv)
	f.gradArguments(c, dout, qkv, stats)
	c.pointer(partial)
	c.int(planUnits)
	c.int(f.Q * f.Heads.Size)
	c.int(f.Cols())
	c.int(f.length)
	c.int(f.group())
	c.int(f.tokens)
	c.real(f.scale)
	c.real(f.ScoreScale())
	c.real(f.limit())
	c.int(f.Heads.Size)
	c.grid(f.blocks(rows), f.Q, f.rows, threads, shared)
	if !f.apartQueries() {
		return
	}
	c = d.begin("flash_join", "join_queries", f.storage)
	c.tensor(dqkv)
	f.joinArguments(c, partial, planUnits)
	c.int(f.Heads.Size)
	c.grid(ceilDiv(f.length, 4), f.Q, f.rows, 128, 0)
}

// gradKeys writes the key and value heads of dqkv.
func (d *Device) gradKeys(f *flash, dqkv, dout, qkv *tensor.Tensor, stats, partial driver.Pointer) {
	planTiles, tiles := 0, ceilDiv(f.length, tileKeys)
	if f.plan != nil {
		planTiles, tiles = f.plan.planTiles, f.plan.mostTiles
	}
	blocks, headsOfBlock := f.KV, f.group()
	if f.apartKeys() {
		blocks, headsOfBlock = f.Q, 1
	} else {
		partial = 0
	}
	file, name, threads := "flash_keys", "flash_keys", 128
	rows, shared := tileKeys, 4*tileKeys*f.pieces()
	if f.Heads.Size > 64 {
		shared /= 2 // it processes 32 queries at a time
	}
	if !f.cores {
		file, name = "flash_plain", "plain_keys"
		rows, shared = f.plainRows(2, 2)
		threads = rows * 8
	}
	c := d.beginFlash(f, file, name, rows, f.apartKeys())
	c.column(dqkv, f.keyCol())
	c.column(dqkv, f.valueCol())
	f.gradArguments(c, dout, qkv, stats)
	c.pointer(partial)
	c.int(planTiles)
	c.int(f.Q * f.Heads.Size)
	c.int(f.Cols())
	c.int(f.length)
	c.int(f.group())
	c.int(headsOfBlock)
	c.int(f.tokens)
	c.real(f.scale)
	c.real(f.ScoreScale())
	c.real(f.limit())
	c.int(f.Heads.Size)
	c.grid(tiles*(tileKeys/rows), blocks, f.rows, threads, shared)
	if !f.apartKeys() {
		return
	}
	c = d.begin("flash_join", "join_keys", f.storage)
	c.column(dqkv, f.keyCol())
	c.column(dqkv, f.valueCol())
	f.joinArguments(c, partial, planTiles)
	c.int(f.group())
	c.int(f.Heads.Size)
	c.grid(ceilDiv(f.length, 4), f.KV, f.rows, 128, 0)
}

// gradArguments adds the arguments that both passes read.
func (f *flash) gradArguments(c *call, dout, qkv *tensor.Tensor, stats driver.Pointer) {
	c.tensor(dout)
	c.pointer(stats)
	c.tensor(qkv)
	c.column(qkv, f.keyCol())
	c.column(qkv, f.valueCol())
	c.optional(f.start)
	c.pointer(f.slopes)
	c.planned(f.plan)
}

// joinArguments adds the arguments of kernels that combine results. all is the number of units, or tiles, of the
// plan's heads.
func (f *flash) joinArguments(c *call, partial driver.Pointer, all int) {
	c.pointer(partial)
	c.pointer(f.plan.memory)
	c.pointer(f.plan.slotsAt())
	c.int(len(f.plan.graphs))
	c.int(all)
	c.int(f.Cols())
	c.int(f.length)
}
