package dataset

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
)

// An Order changes where in a run the rows of the training split come, by scores of their documents. Each epoch still holds each
// row exactly once, and which row sample k is stays a function of (data, packing, seed, scores, Order, k).
//
// The warm-up is a curriculum (Bengio et al. 2009; of the metrics, compression, MTLD and Flesch did best in arXiv 2506.11300,
// as a warm-up before random order): sample i of the first w is drawn evenly from the rows not yet seen among the easiest
// share c(i/w) of all n, where c grows from Start to 1. After it the rows that are left come in random order.
//
// The annealing serves the best data last, while the learning rate falls (MiniCPM, arXiv 2404.06395; Llama 3, 2407.21783;
// OLMo 2, 2501.00656): the last a samples of the run are drawn evenly from the best share Best of the rows of their epoch
// that are not yet seen at Since, and are held back until then.
//
// The score of a row is the mean of its documents' scores, weighted by their tokens in it; documents without a score do not
// count, and a row without any comes last, neither easy nor good. Rows of the same score are in random order.
//
// Memory: 4 bytes a row for each epoch that is not in plain random order, which are the first and the two that the
// annealing begins and ends in; 8 more a row and 4 a document while the loader opens. Off by default. What a warm-up gains is mostly
// gone by the end of a run, so it is not for the last percent; annealing needs scores that say what good is.
type Order struct {
	Run   uint64 // samples of the whole run
	First First
	Last  Last
}

// First is the warm-up. It takes at most the first epoch.
type First struct {
	Scores  string  // their name; "" for no warm-up
	High    bool    // high scores are easy
	Samples uint64  // w
	Start   float64 // c(0), above 0
	Pacing  Pacing
}

// Last is the annealing.
type Last struct {
	Scores  string  // their name; "" for no annealing
	High    bool    // high scores are good
	Samples uint64  // a
	Best    float64 // share of the rows
	Since   uint64  // sample from which on rows are held back, at most Run − Samples. A run in random order can go on with this order up to there
}

// Pacing is how the share of rows that a warm-up draws from grows with its part t that is over, from c₀ = Start to 1.
type Pacing string

const (
	Linear Pacing = "linear" // c₀ + (1 − c₀)·t
	Root   Pacing = "root"   // √(c₀² + (1 − c₀²)·t): as many new rows at each level of difficulty (Platanios et al. 2019, arXiv 1903.09848)
	Step   Pacing = "step"   // c₀ + (1 − c₀)·⌊4t⌋/4
)

// share is c(t). The conversions keep a product and a sum from being fused, so that it is the same on every machine.
func (p Pacing) share(t, start float64) float64 {
	switch p {
	case Root:
		return math.Sqrt(float64(start*start) + float64((1-float64(start*start))*t))
	case Step:
		return start + float64((1-start)*math.Floor(4*t)/4)
	}
	return start + float64((1-start)*t)
}

// admitted is how many of the n rows, from the easiest, the warm-up has drawn from when it has drawn sample i, at least i+1.
func (f First) admitted(i, w, n uint64) uint64 {
	c := f.Pacing.share(float64(i)/float64(w), f.Start)
	return min(max(uint64(math.Ceil(c*float64(n))), i+1), n)
}

// arranged is an epoch that is not in plain random order.
type arranged struct {
	epoch uint64
	rows  []uint32 // at each position
}

// Arrange gives the samples an order. It reads the scores that the order names.
func (l *Loader) Arrange(o Order) error {
	switch {
	case o.First.Scores == "" && o.Last.Scores == "":
		return nil
	case l.windows > math.MaxUint32:
		return fmt.Errorf("%d rows are too many to be ordered (the limit is 2^32)\n  try a larger model.context, or remove data.order", l.windows)
	case o.First.Samples > o.Run || o.Last.Samples > o.Run-o.First.Samples || o.Last.Since > o.Run-o.Last.Samples:
		return fmt.Errorf("an order of %d samples cannot have a warm-up of %d and annealing over %d that holds rows back from %d on", o.Run, o.First.Samples, o.Last.Samples, o.Last.Since)
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

// arrangement returns the rows of an epoch, or nil if they are in plain random order.
func (l *Loader) arrangement(epoch uint64) []uint32 {
	for _, a := range l.arranged {
		if a.epoch == epoch {
			return a.rows
		}
	}
	return nil
}

// base returns the rows of an epoch in plain random order.
func (l *Loader) base(epoch uint64) []uint32 {
	perm := newPermutation(l.windows, l.seed, epoch)
	rows := make([]uint32, l.windows)
	for i := range rows {
		rows[i] = uint32(perm.at(uint64(i)))
	}
	return rows
}

// draw puts rows, which are in random order, in the order of a warm-up of w samples: sorted from the easiest, then shuffled as
// Fisher and Yates do, but for drawing only from those that are admitted.
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

// hold moves count of the best rows to position at; the others keep their order.
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

// byScore sorts rows from low to high scores, or the other way; those without one are last, and equal ones stay as they are.
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

// rank is a number that orders as the score does; NaN has the largest.
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

// below is number i of a stream of numbers that are evenly distributed in 0…n−1.
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

// documentsInRows calls f for each part of a document that stands in a row, with how many of its tokens do, in the order of the
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

// orderChecksum is a checksum of what comes where, in hexadecimal; "" if every epoch is in plain random order.
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
