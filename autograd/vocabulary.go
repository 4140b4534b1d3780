package autograd

import (
	"math"

	"anneal/device"
	"anneal/tensor"
)

// Tables cut by rows (Shoeybi et al. 2019, arXiv 1909.08053 §3): each peer has a range of the vocabulary. Embedding
// looks up the tokens of this range, uses zeros for the others, and sums the rows over the peers. The head computes
// the logits of its tokens; for each row of logits the peers exchange two numbers:
//
//	log Z  = log Σ_r exp(log Z_r)              log Z_r: of the logits of peer r
//	loss   = log Z − Σ_r (log Z_r − loss_r)    loss_r: log Z_r, less the target's logit on the peer that has it
//	dlogits = exp(logits − log Z) − onehot     of its own tokens
//
// so no peer ever forms [c, V], and every peer has the losses of all tokens.

// Rows describes which rows of a table this rank has: those from number First on, out of All.
type Rows struct{ First, All int }

// cutRows reports whether this rank has only some rows of a table.
func (t *Tape) cutRows(table *Param) bool { return table.Cut == Outputs && t.peers() > 1 }

// here writes ids [N] to dst as numbers of this rank's rows of table, or device.Elsewhere for rows that it does not
// have; device.Ignored stays. It returns them in host memory, valid until the next call.
func (t *Tape) here(dst, ids *tensor.Tensor, table *Param) []int32 {
	n := ids.Bytes()
	if m := &t.meeting; len(m.ids) < n {
		m.ids = make([]byte, n)
	}
	raw := t.meeting.ids[:n]
	t.Device.Read(raw, ids)
	view := tensor.View(tensor.I32, raw, ids.Len())
	list, rows := view.I32(), table.Value.Rows()
	for i, id := range list {
		switch at := int(id) - table.Rows.First; {
		case id == device.Ignored:
		case at < 0 || at >= rows:
			list[i] = device.Elsewhere
		default:
			list[i] = int32(at)
		}
	}
	t.Device.Write(dst, raw)
	return list
}

// embedCut is Embedding for a table of which this rank has only some rows.
func (t *Tape) embedCut(table *Param, ids *tensor.Tensor) *Var {
	n, d := ids.Len(), table.Value.Dim(1)
	local := t.keptRef(tensor.I32, n)
	t.here(local, ids, table)
	out := t.wrap(t.keep.New(t.Types.Stream, t.streamRows(n), d))
	mark := t.temp.Mark()
	part := t.ref(t.temp.New(t.Types.Stream, n, d)) // [N, D]
	t.Device.Embedding(part, &table.Value, local)
	t.sumPeers(&out.Value, part, false)
	t.temp.Release(mark)
	if t.grad {
		n := t.node()
		n.backward, n.w, n.out = embedCutBack, table, out
		n.tables[0] = local
	}
	return out
}

func embedCutBack(t *Tape, n *node) {
	mark := t.temp.Mark()
	t.Device.EmbeddingGrad(t.sumGrad(n.w), t.gathered(t.streamGrad(n.out)), n.tables[0])
	t.temp.Release(mark)
}

// shareLoss writes the losses of logits z [c, V/t], and log Z to logZ, both [c] and over the logits of all peers. Any
// peer may have a target's row. ids are the targets in host memory.
func (t *Tape) shareLoss(loss, logZ, z, targets *tensor.Tensor, ids []int32, o device.LossOptions) {
	mark, c := t.temp.Mark(), z.Rows()
	mine := t.ref(t.temp.New(t.Types.Stat, 2, c)) // log Z_r, loss_r
	own := t.ref(mine.Slice(1, 2))
	o.LogZ = t.ref(mine.Slice(0, 1))
	t.Device.CrossEntropy(own, nil, z, targets, o)
	m := t.meet()
	for r := range t.peers() {
		m.out, m.room = append(m.out, *mine), append(m.room, t.roomFrom(r, t.Types.Stat, 2, c))
	}
	in := t.Tensor.Exchange(m.out, m.room)
	size := mine.Bytes()
	if len(m.host) < (len(in)+1)*size {
		m.host = make([]byte, (len(in)+1)*size)
	}
	for r := range in {
		t.Device.Read(m.host[r*size:(r+1)*size], &in[r])
	}
	t.Tensor.Release()
	all := tensor.View(t.Types.Stat, m.host[:len(in)*size], len(in), 2, c)
	result := m.host[len(in)*size : (len(in)+1)*size]
	merged := tensor.View(t.Types.Stat, result, 2, c)
	for i := range c {
		z, l := 0.0, 0.0
		if ids[i] != device.Ignored {
			z, l = mergeLoss(&all, i)
		}
		merged.SetFloat64(i, z)
		merged.SetFloat64(c+i, l)
	}
	t.Device.Write(logZ, result[:size/2])
	t.Device.Write(loss, result[size/2:])
	t.temp.Release(mark)
}

// mergeLoss returns log Z and the loss of row i, merged from those of all peers: all [t, 2, c].
func mergeLoss(all *tensor.Tensor, i int) (logZ, loss float64) {
	peers, c := all.Dim(0), all.Dim(2)
	top, right, sum := math.Inf(-1), 0.0, 0.0
	for r := range peers {
		z, l := all.Float64(2*r*c+i), all.Float64((2*r+1)*c+i)
		top, right = max(top, z), right+(z-l)
	}
	for r := range peers {
		sum += math.Exp(all.Float64(2*r*c+i) - top)
	}
	logZ = top + math.Log(sum)
	return logZ, logZ - right
}
