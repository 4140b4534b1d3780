package dataset

import (
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
)

// A Mix defines the share of each source in a run's samples, in phases: with constant weights, or with weights that
// change linearly, such as more of the best data at the end of a run.
//
// Samples come in blocks of 64. The number of samples of each source in a block is determined at the block's end, so
// that
//
//	|drawn − ∫ weight| ≤ 1 sample for every source at every end of a block, from the beginning of the phase
//
// The j-th sample of a source is due while ∫ weight goes from j−1 to j, and samples due earliest come first.
// (Tijdeman 1980, the chairman assignment problem, shows that this is possible, for changing weights as well.) Within
// a block samples come in the order of a keyed permutation, and those of one source in the source's own order. Sample
// k of the run is therefore sample j of source s, as a pure function of (Mix, seed, k). It does not depend on later
// phases: a run can continue with other weights.
//
// Memory: 32 bytes per source for every 262,144 samples. Reading on costs 50 ns per sample. The first access to a
// sample computes the weights of all blocks before it: 1.3 ms for a million samples of five sources.
type Mix []MixPhase

// MixPhase covers the samples from From, rounded up to a multiple of 64, up to the next phase. Weights are shares of
// rows, and need not sum to one.
type MixPhase struct {
	From    uint64
	Weights []float64 // of each source, 0 or more
	To      []float64 // weights at the start of the next phase, approached linearly; nil if constant
}

const (
	mixBlock   = 64      // samples
	mixMarks   = 1 << 12 // blocks between marks
	mixSamples = 1 << 34 // limit of the samples of a mix
)

// check returns an error unless m is a valid mix of n sources.
func (m Mix) check(n int) error {
	if len(m) == 0 || m[0].From != 0 {
		return errors.New("a mix needs weights from sample 0 on")
	}
	for i, p := range m {
		switch {
		case i > 0 && p.From < m[i-1].From:
			return fmt.Errorf("weights from sample %d on follow those from sample %d on: they must be in "+
				"ascending order", p.From, m[i-1].From)
		case p.From > mixSamples:
			return fmt.Errorf("weights from sample %d on: a mix has at most %d samples", p.From, uint64(mixSamples))
		case p.To != nil && i == len(m)-1:
			return errors.New("the last weights change linearly, but their end is missing")
		}
		if err := checkWeights(p.Weights, n); err != nil {
			return err
		}
		if p.To == nil {
			continue
		}
		if err := checkWeights(p.To, n); err != nil {
			return err
		}
	}
	return nil
}

func checkWeights(weights []float64, n int) error {
	if len(weights) != n {
		return fmt.Errorf("%d weights for %d sources", len(weights), n)
	}
	sum := 0.0
	for _, w := range weights {
		if !(w >= 0) || w > 1e100 {
			return fmt.Errorf("the weight %v is not a finite number of at least 0", w)
		}
		sum += w
	}
	if sum == 0 {
		return errors.New("all weights are 0")
	}
	return nil
}

// Normalised returns the weights scaled to sum to one.
func Normalised(weights []float64) []float64 {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	shares := make([]float64, len(weights))
	for i, w := range weights {
		shares[i] = w / sum
	}
	return shares
}

// phase is a MixPhase in the form used for computation.
type phase struct {
	from   uint64    // a multiple of mixBlock
	share  []float64 // of each source at from; they sum to one
	growth []float64 // change of the share per sample
}

// phases returns the phases that have samples.
func (m Mix) phases() []phase {
	var list []phase
	start := func(i int) uint64 { return (m[i].From + mixBlock - 1) / mixBlock * mixBlock }
	for i, p := range m {
		if i+1 < len(m) && start(i+1) == start(i) {
			continue
		}
		f := phase{from: start(i), share: Normalised(p.Weights), growth: make([]float64, len(p.Weights))}
		if p.To != nil {
			for s, w := range Normalised(p.To) {
				f.growth[s] = (w - f.share[s]) / float64(start(i+1)-f.from)
			}
		}
		list = append(list, f)
	}
	return list
}

// quota returns the integral of the weight of a source over x samples from the beginning of the phase. Conversions
// prevent fused multiply-adds, so that it is the same on every machine.
func (p *phase) quota(source int, x float64) float64 {
	q := float64(p.share[source]*x) + float64(float64(p.growth[source]*x)*x)/2
	return max(q, 0)
}

// next returns the time, in samples from the beginning of the phase, at which the sample of a source after n is due:
// when its quota reaches n+1, at the latest math.MaxFloat64. It is infinite if the current quota q does not include a
// part of that sample.
func (p *phase) next(source int, n uint64, q float64) float64 {
	if float64(n) >= q {
		return math.Inf(1)
	}
	w, g, quota := p.share[source], p.growth[source], float64(n)+1
	root := float64(w*w) + float64(2*float64(g*quota))
	if root < 0 {
		return math.MaxFloat64
	}
	return min(2*quota/(w+math.Sqrt(root)), math.MaxFloat64)
}

// Expected returns the number of the first samples that come from each source, within one per phase of the mix, which
// must be valid.
func (m Mix) Expected(samples uint64) []float64 {
	list := m.phases()
	sums := make([]float64, len(m[0].Weights))
	for i, p := range list {
		end := samples
		if i+1 < len(list) {
			end = min(end, list[i+1].from)
		}
		for s := range sums {
			if end > p.from {
				sums[s] += p.quota(s, float64(end-p.from))
			}
		}
	}
	return sums
}

// tally holds the samples drawn at the beginning of a block.
type tally struct {
	block uint64
	phase int
	base  []uint64 // drawn of each source before the phase
	drawn []uint64 // of each source

	quota, due []float64 // buffers of step
}

func newTally(n int) tally {
	counts, numbers := make([]uint64, 2*n), make([]float64, 2*n)
	return tally{base: counts[:n], drawn: counts[n:], quota: numbers[:n], due: numbers[n:]}
}

func (t *tally) set(from *tally) {
	t.block, t.phase = from.block, from.phase
	copy(t.base, from.base)
	copy(t.drawn, from.drawn)
}

// step advances to the next block.
func (t *tally) step(phases []phase) {
	if next := t.phase + 1; next < len(phases) && t.block*mixBlock == phases[next].from {
		t.phase = next
		copy(t.base, t.drawn)
	}
	p := &phases[t.phase]
	t.block++
	samples := t.block*mixBlock - p.from
	x, left := float64(samples), int64(samples)
	for s, base := range t.base {
		q := p.quota(s, x)
		// The samples due by now. The tolerance absorbs rounding errors of the quota.
		if n := base + uint64(max(math.Floor(q-1e-6), 0)); n > t.drawn[s] {
			t.drawn[s] = n
		}
		left -= int64(t.drawn[s] - base)
		t.quota[s], t.due[s] = q, p.next(s, t.drawn[s]-base, q)
	}
	for ; left > 0; left-- {
		first := 0
		for s, due := range t.due {
			if due < t.due[first] {
				first = s
			}
		}
		t.drawn[first]++
		t.due[first] = p.next(first, t.drawn[first]-t.base[first], t.quota[first])
	}
}

// mixer finds the source of each sample.
type mixer struct {
	phases []phase
	key    uint64
	marks  []tally // at every mixMarks-th block, as far as needed
	before tally   // at the beginning of the current block
	after  tally

	source [mixBlock]int    // of each sample of the current block
	index  [mixBlock]uint64 // its number within its source
	seen   []uint64
}

func newMixer(m Mix, seed uint64) *mixer {
	n := len(m[0].Weights)
	x := &mixer{
		phases: m.phases(), key: mix(mix(seed) - 3), seen: make([]uint64, n), marks: []tally{newTally(n)},
		before: newTally(n), after: newTally(n),
	}
	x.decode(0)
	return x
}

// at returns the source of sample k, and its number within the source.
func (x *mixer) at(k uint64) (source int, index uint64) {
	if block := k / mixBlock; block != x.before.block {
		x.decode(block)
	}
	return x.source[k%mixBlock], x.index[k%mixBlock]
}

// drawn returns the number of the first k samples that come from each source.
func (x *mixer) drawn(k uint64) []uint64 {
	if block := k / mixBlock; block != x.before.block {
		x.decode(block)
	}
	counts := slices.Clone(x.before.drawn)
	for _, s := range x.source[:k%mixBlock] {
		counts[s]++
	}
	return counts
}

// decode makes a block the current one.
func (x *mixer) decode(block uint64) {
	x.seek(block)
	x.before.set(&x.after)
	x.after.step(x.phases)
	order := newPermutation(mixBlock, x.key, block)
	copy(x.seen, x.before.drawn)
	for i := range uint64(mixBlock) {
		at, s := order.at(i), 0
		for n := x.after.drawn[0] - x.before.drawn[0]; n <= at; n += x.after.drawn[s] - x.before.drawn[s] {
			s++
		}
		x.source[i], x.index[i] = s, x.seen[s]
		x.seen[s]++
	}
}

// seek moves after to the beginning of a block.
func (x *mixer) seek(block uint64) {
	if x.after.block > block || x.after.block+mixMarks <= block {
		x.after.set(&x.marks[min(block/mixMarks, uint64(len(x.marks)-1))])
	}
	for x.after.block < block {
		x.after.step(x.phases)
		if x.after.block == uint64(len(x.marks))*mixMarks {
			mark := newTally(len(x.seen))
			mark.set(&x.after)
			x.marks = append(x.marks, mark)
		}
	}
}

// used reports which sources the first k samples can come from.
func (x *mixer) used(k uint64) []bool {
	used := make([]bool, len(x.seen))
	for _, p := range x.phases {
		for s := range used {
			used[s] = used[s] || p.from < k && (p.share[s] > 0 || p.growth[s] > 0)
		}
	}
	return used
}

// hash adds everything that determines the sources of the first k samples.
func (x *mixer) hash(h hash.Hash, k uint64) {
	for _, p := range x.phases {
		for s, share := range p.share {
			if p.from < k && (share > 0 || p.growth[s] > 0) {
				fmt.Fprintf(h, "%d %d %x %x\n", p.from, s, share, p.growth[s])
			}
		}
	}
}
