package dataset

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
)

// An Order sorts the rows of the training split within a run by scores of their documents. Each epoch still holds
// each row exactly once, and the row of sample k remains a function of (data, packing, seed, scores, Order, k).
//
// The warm-up is a curriculum (Bengio et al. 2009; of the metrics, compression, MTLD and Flesch did best in arXiv
// 2506.11300, as a warm-up before random order). Sample i of the first w is drawn uniformly from the unseen rows
// among the easiest share c(i/w) of all n rows, where c grows from Start to 1. After it the remaining rows come in
// random order.
//
// Annealing reads the best data last, while the learning rate falls (MiniCPM, arXiv 2404.06395; Llama 3, 2407.21783;
// OLMo 2, 2501.00656). The last a samples of the run are drawn uniformly from the best share Best of the rows of
// their epoch that are unseen at Since; these rows are held back until then.
//
// The score of a row is the mean of its documents' scores, weighted by their tokens in it. Documents without a score
// are ignored, and a row without any comes last, neither easy nor good. Rows of equal score are in random order.
//
// Memory: 4 bytes per row for each epoch that is not in random order: the first one, and the two in which annealing
// begins and ends; 8 more per row and 4 per document while the loader opens. Off by default. The gain of a warm-up is
// mostly gone by the end of a run, so it does not help the last percent. Annealing needs scores that measure quality.
type Order struct {
	Run   uint64 // samples of the whole run
	First First
	Last  Last
}

// First is the warm-up. It covers at most the first epoch.
type First struct {
	Scores  string  // name of the scores; "" for no warm-up
	High    bool    // high scores are easy
	Samples uint64  // w
	Start   float64 // c(0), above 0
	Pacing  Pacing
}

// Last is the annealing.
type Last struct {
	Scores  string  // name of the scores; "" for no annealing
	High    bool    // high scores are good
	Samples uint64  // a
	Best    float64 // share of the rows
	// sample from which on rows are held back, at most Run − Samples; up to it a run in random order can switch to this
	// order
	Since uint64
}

// Pacing defines how the share of rows in a warm-up grows with its progress t, from c₀ = Start to 1.
type Pacing string

const (
	Linear Pacing = "linear" // c₀ + (1 − c₀)·t
	// √(c₀² + (1 − c₀²)·t): equally many new rows at each difficulty (Platanios et al. 2019, arXiv 1903.09848)
	Root Pacing = "root"
	Step Pacing = "step" // c₀ + (1 − c₀)·⌊4t⌋/4
)

// share returns c(t). Conversions prevent fused multiply-adds, so that it is the same on every machine.
func (p Pacing) share(t, start float64) float64 {
	switch p {
	case Root:
		return math.Sqrt(float64(start*start) + float64((1-float64(start*start))*t))
	case Step:
		return start + float64((1-start)*math.Floor(4*t)/4)
	}
	return start + float64((1-start)*t)
}

// admitted returns the number of the n rows, from the easiest, that the warm-up has drawn from up to sample i, at
// least i+1.
func (f First) admitted(i, w, n uint64) uint64 {
	c := f.Pacing.share(float64(i)/float64(w), f.Start)
	return min(max(uint64(math.Ceil(c*float64(n))), i+1), n)
}

// arranged is an epoch that is not in random order.
type arranged struct {
	epoch uint64
	rows  []uint32 // at each position
}

// Arrange orders the samples. It reads the scores that the order names.
func (l *Loader) Arrange(o Order) error {
	switch {
	case o.First.Scores == "" && o.Last.Scores == "":
		return nil
	case l.windows > math.MaxUint32:
		return fmt.Errorf("%d rows are too many to be ordered (the limit is 2^32)\n"+
			"  try a larger model.context, or remove data.order", l.windows)
	case o.First.Samples > o.Run || o.Last.Samples > o.Run-o.First.Samples || o.Last.Since > o.Run-o.Last.Samples:
		return fmt.Errorf("an order of %d samples cannot have a warm-up of %d and annealing over %d that holds rows "+
			"back from %d on", o.Run, o.First.Samples, o.Last.Samples, o.Last.Since)
	}
	first, err := l.rowScores(o.First.Scores)
	if err != nil {
		return err
	}
	last := first
	if o.Last.Scores != o.First.Scores {
		if last, err = l.rowScores(o.Last.Scores); err != nil {
			return err
		}
	}
	n := l.windows
	warm, begin, end := uint64(0), o.Run, o.Run
	if o.First.Scores != "" {
		warm = min(o.First.Samples, n)
	}
	if o.Last.Scores != "" {
		begin = o.Run - o.Last.Samples
	}
	l.plain = math.MaxUint64
	for _, epoch := range []uint64{0, begin / n, (max(end, 1) - 1) / n} {
		at := epoch * n // its first sample
		lo, hi := max(begin, at)-at, min(end, at+n)-at
		here := epoch == 0 && warm > 0
		if drawn := lo < hi && hi-lo < n; !here && !drawn || l.arrangement(epoch) != nil {
			continue
		}
		rows := l.base(epoch)
		since := uint64(0)
		if here {
			o.First.draw(rows, first, mix(mix(l.seed)-1), warm)
			since = warm
			l.plain = 0
		}
		if lo < hi {
			since = min(max(since, max(o.Last.Since, at)-at), lo)
			o.Last.hold(rows[since:], last, mix(mix(l.seed)-2-epoch), lo-since, hi-lo)
			l.plain = min(l.plain, at+since)
		}
		l.arranged = append(l.arranged, arranged{epoch, rows})
	}
	l.order = l.orderChecksum()
	return nil
}

// arrangement returns the rows of an epoch, or nil if they are in random order.
func (l *Loader) arrangement(epoch uint64) []uint32 {
	for _, a := range l.arranged {
		if a.epoch == epoch {
			return a.rows
		}
	}
	return nil
}

// base returns the rows of an epoch in random order.
func (l *Loader) base(epoch uint64) []uint32 {
	perm := newPermutation(l.windows, l.seed, epoch)
	rows := make([]uint32, l.windows)
	for i := range rows {
		rows[i] = uint32(perm.at(uint64(i)))
	}
	return rows
}

// draw reorders rows, which are in random order, for a warm-up of w samples: it sorts them from the easiest, then
// shuffles them (Fisher–Yates) with each draw limited to the admitted rows.
func (f First) draw(rows []uint32, scores []float32, key, w uint64) {
	byScore(rows, scores, f.High)
	n := uint64(len(rows))
	for i := range n {
		m := n
		if i < w {
			m = f.admitted(i, w, n)
		}
		j := i + below(key, i, m-i)
		rows[i], rows[j] = rows[j], rows[i]
	}
}

// hold moves count of the best rows to position at and keeps the order of the others.
func (l Last) hold(rows []uint32, scores []float32, key, at, count uint64) {
	best := slices.Clone(rows)
	byScore(best, scores, l.High)
	from := min(max(uint64(math.Ceil(l.Best*float64(len(rows)))), count), uint64(len(rows)))
	held := make([]uint64, (len(scores)+63)/64)
	for i := range count {
		j := i + below(key, i, from-i)
		best[i], best[j] = best[j], best[i]
		held[best[i]/64] |= 1 << (best[i] % 64)
	}
	others := rows[:0]
	for _, r := range rows {
		if held[r/64]&(1<<(r%64)) == 0 {
			others = append(others, r)
		}
	}
	copy(rows[at+count:], others[at:])
	copy(rows[at:], best[:count])
}

// byScore sorts rows by ascending or descending score. Rows without a score come last; the sort is stable.
func byScore(rows []uint32, scores []float32, high bool) {
	keys := make([]uint64, len(rows))
	for i, r := range rows {
		keys[i] = uint64(rank(scores[r], high))<<32 | uint64(i)
	}
	slices.Sort(keys)
	was := slices.Clone(rows)
	for i, k := range keys {
		rows[i] = was[uint32(k)]
	}
}

// rank maps a score to an integer with the same order; NaN is the largest.
func rank(score float32, high bool) uint32 {
	if score != score {
		return math.MaxUint32
	}
	b := math.Float32bits(score + 0) // −0 is 0
	if b>>31 != 0 {
		b = ^b
	} else {
		b |= 1 << 31
	}
	if high {
		b = ^b
	}
	return b
}

// below returns number i of a stream of uniform numbers in 0…n−1.
func below(key, i, n uint64) uint64 {
	high, _ := bits.Mul64(mix(key+(i+1)*0x9e3779b97f4a7c15), n)
	return high
}

// rowScores returns the score of each row; nil if name is "".
func (l *Loader) rowScores(name string) ([]float32, error) {
	if name == "" {
		return nil, nil
	}
	s, err := l.d.ReadScores(name)
	if err != nil {
		return nil, err
	}
	sums, tokens := make([]float64, l.windows), make([]uint32, l.windows)
	err = l.documentsInRows(func(doc, row, n uint64) {
		if v := float64(s.Values[doc]); v == v {
			sums[row] += float64(v * float64(n))
			tokens[row] += uint32(n)
		}
	})
	if err != nil {
		return nil, err
	}
	scores := make([]float32, l.windows)
	for i := range scores {
		scores[i] = float32(sums[i] / float64(tokens[i])) // 0/0 is NaN
	}
	return scores, nil
}

// documentsInRows calls f for each part of a document in a row, with its number of tokens, in the order of the
// stream.
func (l *Loader) documentsInRows(f func(doc, row, n uint64)) error {
	t, doc := uint64(l.context), uint64(0)
	if l.packed == nil {
		return l.stream.documents(func(start, end, _ uint64) {
			for at := start; at < end && at/t < l.windows; at = (at/t + 1) * t {
				f(doc, at/t, min(end, (at/t+1)*t)-at)
			}
			doc++
		})
	}
	rowOf := l.packed.rowOf()
	at := slices.Clone(l.packed.longer) // the next piece of each length
	counted := docSpans(func(each func(start, end, prompt uint64)) error {
		return l.stream.documents(func(start, end, prompt uint64) {
			each(start, end, prompt)
			doc++
		})
	})
	return counted.pieces(l.packed.kind, l.context, func(_, n, _ uint64) {
		f(doc, uint64(rowOf[at[n]]), n)
		at[n]++
	})
}

// orderChecksum returns a checksum of the order, in hexadecimal; "" if every epoch is in random order.
func (l *Loader) orderChecksum() string {
	if len(l.arranged) == 0 {
		return ""
	}
	sum := crc32.New(castagnoli)
	buf := make([]byte, 0, 1<<12)
	for _, a := range l.arranged {
		sum.Write(binary.LittleEndian.AppendUint64(buf, a.epoch))
		for chunk := range slices.Chunk(a.rows, 1024) {
			buf = buf[:0]
			for _, r := range chunk {
				buf = binary.LittleEndian.AppendUint32(buf, r)
			}
			sum.Write(buf)
		}
	}
	return fmt.Sprintf("%08x", sum.Sum32())
}
