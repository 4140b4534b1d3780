package train

import (
	"context"
	"math"
	"testing"

	"anneal/dataset"
)

// masked ignores the targets of a source for which keep is false, by sample and position.
type masked struct {
	dataset.Source
	keep func(sample uint64, position int) bool
}

func (m masked) Batch(b *dataset.Batch, first uint64, rows int) error {
	if err := m.Source.Batch(b, first, rows); err != nil {
		return err
	}
	for i := range b.Targets {
		if !m.keep(first+uint64(i/b.Context), i%b.Context) {
			b.Targets[i] = dataset.Ignore
		}
	}
	return nil
}

// gradientOf returns the gradient of the summed loss, the sum and the number of targets of a step's batch.
func gradientOf(t *testing.T, tr *Trainer, src dataset.Source) ([]float64, batchSums) {
	t.Helper()
	tr.accum = tr.cfg.Train.BatchTokens / (tr.rows * tr.Model().Config.Context)
	sums, err := tr.gradient(context.Background(), src, tr.Position().Sample)
	if err != nil {
		t.Fatal(err)
	}
	var g []float64
	for _, p := range tr.Model().Params() {
		for i := range p.Grad.Len() {
			g = append(g, p.Grad.Float64(i))
		}
	}
	return g, sums
}

// What ignores a target takes it out of loss, gradient, z-loss and the number that they are divided by, and leaves no
// trace of it: what some targets give and what the others give add up to what all give, with very different numbers of
// targets in the micro-batches, and whatever the micro-batches are.
func TestIgnoredTargetsContributeNothing(t *testing.T) {
	p := loadParity(t)
	some := func(sample uint64, position int) bool { return sample%3 == 0 && position > 3 || position == 5 }
	others := func(sample uint64, position int) bool { return !some(sample, position) }
	all := func(uint64, int) bool { return true }
	var first []float64
	for _, micro := range []int{1, 2, 4} {
		tr, src := parityTrainer(t, p, 0, "fp64", 1, micro)
		tr.batch.ZLoss = 0.01
		part, a := gradientOf(t, tr, masked{src, some})
		rest, b := gradientOf(t, tr, masked{src, others})
		whole, c := gradientOf(t, tr, masked{src, all})
		if a.targets == 0 || a.targets+b.targets != c.targets || a.targets == b.targets {
			t.Fatalf("%d and %d of %d targets", a.targets, b.targets, c.targets)
		}
		if d := math.Abs(a.loss + b.loss - c.loss); d > 1e-12*c.loss {
			t.Errorf("micro-batches of %d: losses %v and %v add up to %v", micro, a.loss, b.loss, c.loss)
		}
		if d := math.Abs(a.squaredLogZ + b.squaredLogZ - c.squaredLogZ); d > 1e-12*c.squaredLogZ {
			t.Errorf("micro-batches of %d: squared log Z %v and %v add up to %v",
				micro, a.squaredLogZ, b.squaredLogZ, c.squaredLogZ)
		}
		top := 0.0
		for _, x := range whole {
			top = max(top, math.Abs(x))
		}
		for i := range whole {
			if d := math.Abs(part[i] + rest[i] - whole[i]); d > 1e-12*top {
				t.Fatalf("micro-batches of %d: gradient %d: %v and %v add up to %v",
					micro, i, part[i], rest[i], whole[i])
			}
		}
		if first == nil {
			first = part
		}
		for i := range part {
			if d := math.Abs(part[i] - first[i]); d > 1e-12*top {
				t.Fatalf("gradient %d is %v in micro-batches of %d, %v in those of one", i, part[i], micro, first[i])
			}
		}
	}
}

// A step reports the mean over the targets that count, and the update is of that mean: weighted as the tokens are, not
// as the micro-batches.
func TestLossIsTheMeanOverTargetsThatCount(t *testing.T) {
	p := loadParity(t)
	keep := func(sample uint64, position int) bool { return sample%4 == 0 || position == 7 }
	whole, src := parityTrainer(t, p, 0, "fp64", 1, 4)
	parted, _ := parityTrainer(t, p, 0, "fp64", 1, 1)
	_, sums := gradientOf(t, whole, masked{src, keep})
	for i, tr := range []*Trainer{whole, parted} {
		s, err := tr.Step(context.Background(), masked{src, keep})
		if err != nil || math.Abs(s.Loss-sums.loss/float64(sums.targets)) > 1e-12 {
			t.Errorf("trainer %d: loss %v, %v; want the mean %v", i, s.Loss, err, sums.loss/float64(sums.targets))
		}
	}
	a, b := weightsOf(whole), weightsOf(parted)
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-10 {
			t.Fatalf("weight %d is %v after one micro-batch, %v after four", i, a[i], b[i])
		}
	}
}

// A step without a target changes nothing but its position in the data, and the guard does not count it.
func TestAStepWithoutTargetsIsPassedOver(t *testing.T) {
	tr, src := parityTrainer(t, loadParity(t), 0, "fp32", 1, 4)
	before := hashes(tr)
	s, err := tr.Step(context.Background(), masked{src, func(uint64, int) bool { return false }})
	if err != nil || !s.Skipped || !math.IsNaN(s.Loss) {
		t.Fatalf("%+v, %v", s, err)
	}
	if after := hashes(tr); after != before || tr.Position().Step != 1 || tr.Position().Updates != 0 ||
		tr.Guard().Skipped != 0 {
		t.Errorf("%v, then %v; %+v, %d skips", before, after, tr.progress, tr.Guard().Skipped)
	}
}
