package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/device/cpu/gemm"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/internal/torture"
	"anneal/tensor"
)

func suiteOf(shares ...float64) *Suite {
	s := &Suite{}
	for i, share := range shares {
		if share > 0 {
			s.Figures = append(s.Figures, Figure{Name: string(rune('a' + i)), Value: 3, Unit: "GB/s", Share: share})
		}
	}
	return s
}

// Figures are matched by name, compared by share whatever their values, and sorted with the most slowed first.
func TestCompareMatchesFiguresByName(t *testing.T) {
	before, after := suiteOf(0.8, 0.5, 0.4, 0, 0.9), suiteOf(0.6, 0.55, 0.1, 0.7)
	slices.Reverse(after.Figures)
	after.Figures[0].Value = 1e6
	c := Compare(before, after)
	var names string
	for _, x := range c.Changes {
		names += x.Name
		if want := x.After.Share / x.Before.Share; math.Abs(x.Ratio-want) > 1e-12 {
			t.Errorf("%s: ratio %v, want %v", x.Name, x.Ratio, want)
		}
	}
	if names != "cab" || !slices.Equal(c.Missing, []string{"e"}) || !slices.Equal(c.New, []string{"d"}) ||
		math.Abs(c.Median-0.75) > 1e-12 {
		t.Errorf("%s, missing %v, new %v, median %v", names, c.Missing, c.New, c.Median)
	}
	var slow *SlowerError
	if err := c.Check(0.2); !errors.As(err, &slow) || len(slow.Changes) != 2 ||
		err.Error() != "2 figures fell by more than 20 %; the largest fall is c, by 75 %" {
		t.Errorf("%v", err)
	}
	if err := c.Check(0.76); err != nil {
		t.Error(err)
	}
}

func TestReadSuiteRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for want, text := range map[string]string{
		"has no figures": `{}`, "is not a result": `[1]`, "is not a result of `anneal": `{"figures":`,
		"must be above 0": `{"figures":[{"name":"a","value":1}]}`,
		"the share -1":    `{"figures":[{"name":"a","value":1,"share":-1}]}`,
	} {
		path := filepath.Join(dir, "x.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSuite(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// What All returns can be written, read and compared with itself.
func TestAllMeasuresEveryBenchmark(t *testing.T) {
	torture.Long(t)
	var phases []string
	s, err := All(context.Background(), SuiteOptions{Quick: true,
		Phase: func(name string) { phases = append(phases, name) }, Each: func(Figure) {}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.json")
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	read, err := ReadSuite(path)
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]int{}
	for _, f := range read.Figures {
		group, _, _ := strings.Cut(f.Name, "/")
		groups[group]++
	}
	if len(groups) < len(phases)-1 || len(phases) < 7 { // ranks need two threads
		t.Errorf("groups %v of %v", groups, phases)
	}
	c := Compare(s, read)
	if len(c.Changes) != len(s.Figures) || len(c.New)+len(c.Missing) > 0 || c.Median != 1 || c.Check(1e-9) != nil {
		t.Errorf("a suite beside itself: %d of %d figures, median %v", len(c.Changes), len(s.Figures), c.Median)
	}
}

// Shares of the peak stay above bounds that a shared machine keeps in one of some tries, with one thread. They are half
// of what a quiet machine reaches: a guest of the host that takes turns on a core's units halves everything but the
// peak, which is its best of many moments. A kernel that leaves its fast path falls to a tenth.
func TestSharesOfPeakStayInBounds(t *testing.T) {
	tier, err := isa.Choose()
	if err != nil {
		t.Fatal(err)
	}
	if tier == isa.Generic {
		t.Skip("the tier generic has no fast path")
	}
	type bound struct {
		name  string
		least float64
		share func() (float64, error)
	}
	var bounds []bound
	for _, dtype := range []tensor.DType{tensor.BF16, tensor.F32} {
		for _, form := range []device.Form{device.NN, device.NT, device.TN} {
			c := gemm.Case{Name: "bound", Form: form, M: 512, N: 512, K: 512} // in a slice of time
			bounds = append(bounds, bound{form.String() + " " + dtype.String(), 0.4, func() (float64, error) {
				p := pool.New(1)
				defer p.Close()
				e := gemm.New(tier, p)
				defer e.Close()
				peak := gemm.Peak(tier, dtype, p, 20*time.Millisecond)
				rate, err := e.Measure(c, dtype, 40*time.Millisecond)
				return rate / peak, err
			}})
		}
		bounds = append(bounds, bound{"step " + dtype.String(), 0.25, func() (float64, error) {
			precision := map[tensor.DType]string{tensor.BF16: "bf16", tensor.F32: "fp32"}[dtype]
			r, err := Step(context.Background(), Options{Shape: "tiny", Precision: precision, Threads: 1, Batch: 2,
				Seconds: 0.1})
			if err != nil {
				return 0, err
			}
			return r.FractionOfPeak, nil
		}})
	}
	bounds = append(bounds, bound{"attention", 0.25, func() (share float64, err error) {
		open := func() device.Device { return cpu.NewTier(tier, 1) }
		_, err = Attention(open, AttentionOptions{Patterns: []string{"full"}, Lengths: []int{1024}, Heads: 2,
			HeadDim: 64, DType: tensor.BF16, Seconds: 0.1}, func(c AttentionCase) { share = c.FractionOfPeak })
		return share, err
	}})
	for _, b := range bounds {
		if tier == isa.AMX {
			b.least /= 2 // tiles take in more than caches give
		}
		best := 0.0
		for try := 0; try < 12 && best < b.least; try++ {
			share, err := b.share()
			if err != nil {
				t.Fatal(err)
			}
			best = max(best, share)
		}
		if best < b.least {
			t.Errorf("%s reaches %.0f %% of the peak, at least %.0f %% are expected", b.name, 100*best, 100*b.least)
		}
	}
}
