package dataset

import "math/bits"

// Utilisation describes the rows of the training split in one epoch of a packing.
type Utilisation struct {
	Packing   Packing `json:"packing"`
	Rows      uint64  `json:"rows"`
	Positions uint64  `json:"positions"`       // Rows·T: the positions computed
	Trained   uint64  `json:"trained_tokens"`  // positions whose target is not ignored: neither padding nor in a prompt
	Cut       uint64  `json:"cut_documents"`   // documents that no row holds as a whole
	LeftOut   uint64  `json:"left_out_tokens"` // tokens in no row
}

// Share returns the share of positions that are trained on, 0…1.
func (u Utilisation) Share() float64 { return float64(u.Trained) / float64(max(u.Positions, 1)) }

// Utilisation returns the utilisation of the training split with a packing in rows of context tokens. It reads the
// document index.
func (d *Dataset) Utilisation(kind Packing, context int) (Utilisation, error) {
	u := Utilisation{Packing: kind}
	t, visible := uint64(context), uint64(0)
	if kind == Concat {
		l, err := d.TrainLoader(context, 0)
		if err != nil {
			return u, err
		}
		u.Rows = l.windows
		visible = u.Rows * t // positions of the stream in rows; the targets are 1…visible
		u.Trained = visible
	} else {
		packed, err := d.pack(kind, context)
		if err != nil {
			return u, err
		}
		u.Rows, u.Trained = packed.rows, packed.trained
	}
	u.Positions = u.Rows * t
	err := d.train.documents(func(start, end, prompt uint64) {
		if kind != Concat {
			over := end - min(end, start+t)
			if over > 0 {
				u.Cut++
			}
			if kind == Pad {
				u.LeftOut += over
			}
			return
		}
		held := max(start, visible)
		if start/t != (end-1)/t || end > visible {
			u.Cut++
		}
		u.LeftOut += end - min(held, end)
		u.Trained -= min(start+prompt, held) - start
	})
	return u, err
}

// Lengths describes the lengths of documents, in tokens including EOT.
type Lengths struct {
	Shortest uint64      `json:"shortest"`
	Median   uint64      `json:"median"` // half of the documents are at most this long
	P90      uint64      `json:"p90"`
	P99      uint64      `json:"p99"`
	Longest  uint64      `json:"longest"`
	Bins     []LengthBin `json:"bins"` // from the shortest to the longest, including empty ones
}

// LengthBin counts the documents of From ≤ length < To = 2·From, and their tokens.
type LengthBin struct {
	From      uint64 `json:"from"`
	To        uint64 `json:"to"`
	Documents uint64 `json:"documents"`
	Tokens    uint64 `json:"tokens"`
}

// Lengths measures the documents of the training split, or of the validation split, from the document index. Quantiles
// are exact up to 2^20 tokens; above, they are the longest length.
func (d *Dataset) Lengths(val bool) (Lengths, error) {
	const exact = 1 << 20
	var (
		l      Lengths
		counts = make([]uint64, exact+1)
		bins   [64]LengthBin
		docs   uint64
	)
	stream := &d.train
	if val {
		stream = &d.val
	}
	err := stream.documents(func(start, end, _ uint64) {
		n := end - start
		docs++
		counts[min(n, exact)]++
		b := &bins[bits.Len64(n)-1]
		b.Documents, b.Tokens = b.Documents+1, b.Tokens+n
		if l.Longest = max(l.Longest, n); docs == 1 || n < l.Shortest {
			l.Shortest = n
		}
	})
	if err != nil || docs == 0 {
		return l, err
	}
	quantile := func(percent uint64) uint64 {
		below, want := uint64(0), docs/100*percent+(docs%100*percent+99)/100
		for n, c := range counts[:exact] {
			if below += c; below >= want {
				return uint64(n)
			}
		}
		return l.Longest
	}
	l.Median, l.P90, l.P99 = quantile(50), quantile(90), quantile(99)
	for i := bits.Len64(l.Shortest) - 1; i < bits.Len64(l.Longest); i++ {
		bins[i].From, bins[i].To = 1<<i, 1<<(i+1)
		l.Bins = append(l.Bins, bins[i])
	}
	return l, nil
}
