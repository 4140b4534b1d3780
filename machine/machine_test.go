package machine

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/device"
	_ "anneal/internal/torture"
	"anneal/tensor"
)

// product is a call in the storage of bf16.
func product(m, n, k int) device.Call {
	return device.Call{
		Kernel: "MatMul nt", Types: "bf16 bf16 f32 bf16", M: m, N: n, K: k,
		Ops: 2 * float64(m) * float64(n) * float64(k),
	}
}

// costOf is the time of a product on an invented machine: 10 µs, 200 GFLOP/s, and 2 GB/s for what is packed.
func costOf(c device.Call) float64 {
	return 10e-6 + c.Ops/200e9 + float64(c.M*c.K+c.K*c.N)/2e9
}

func invented(threads int, speed float64) Section {
	s := Section{Threads: threads}
	for _, m := range []int{128, 512, 2048} {
		for _, n := range []int{128, 512, 2048} {
			for _, k := range []int{64, 256, 1024} {
				c := product(m, n, k)
				s.Samples = append(s.Samples, Sample{c, costOf(c) / speed})
			}
		}
	}
	for _, bytes := range []float64{1e4, 1e5, 1e6, 1e7, 1e8} {
		rate := 40e9 // in a cache, and out of it
		if bytes > 3e6 {
			rate = 10e9
		}
		c := device.Call{Kernel: "Add", Types: "f32 f32", Bytes: bytes}
		s.Samples = append(s.Samples, Sample{c, (1e-6 + bytes/rate) / speed})
	}
	return s
}

// Sizes that were not measured are predicted from those that were.
func TestProductsOfOtherSizesArePredicted(t *testing.T) {
	rate := (&Profile{Sections: []Section{invented(1, 1)}}).Rates(1)
	for _, c := range []device.Call{
		product(256, 256, 128), product(1000, 300, 77), product(4096, 50257, 768), product(64, 64, 32),
	} {
		got, known := rate(c)
		if want := costOf(c); !known || math.Abs(got-want) > 0.03*want {
			t.Errorf("%d×%d×%d: %.4g s, want %.4g", c.M, c.N, c.K, got, want)
		}
	}
}

// A pass over memory is slower out of the caches, which a line through all samples would miss.
func TestPassesFollowTheCaches(t *testing.T) {
	rate := (&Profile{Sections: []Section{invented(1, 1)}}).Rates(1)
	for bytes, want := range map[float64]float64{1e5: 1e-6 + 1e5/40e9, 1e6: 1e-6 + 1e6/40e9, 1e8: 1e-6 + 1e8/10e9} {
		got, _ := rate(device.Call{Kernel: "Add", Types: "f32 f32", Bytes: bytes})
		if math.Abs(got-want) > 0.4*want {
			t.Errorf("%.0g bytes: %.3g s, want %.3g", bytes, got, want)
		}
	}
}

// Numbers of threads between those measured have a part of the gain: the reciprocal of the number is interpolated.
func TestThreadsAreInterpolated(t *testing.T) {
	p := &Profile{Sections: []Section{invented(1, 1), invented(4, 4)}}
	c := product(512, 512, 512)
	one, _ := p.Rates(1)(c)
	for threads, want := range map[int]float64{1: 1, 2: 2, 3: 3, 4: 4, 8: 4} {
		if got, _ := p.Rates(threads)(c); math.Abs(one/got-want) > 0.01 {
			t.Errorf("%d threads: %.3f times as fast as one, want %v", threads, one/got, want)
		}
	}
}

// Two ranks with a thread each share the bandwidth of memory, which one thread can nearly take, but not their caches or
// their arithmetic.
func TestRanksShareTheMemory(t *testing.T) {
	two := invented(2, 2)
	for i, s := range two.Samples {
		if s.Bytes > 3e6 {
			two.Samples[i].Seconds = s.Bytes / 12e9 // alone 10 GB/s
		}
	}
	p := &Profile{Sections: []Section{invented(1, 1), two}}
	alone, beside := p.Rates(1), p.RatesBeside(2, 1)
	for _, c := range []struct {
		call device.Call
		want float64 // times as long
	}{
		{product(512, 512, 512), 1},
		{device.Call{Kernel: "Add", Types: "f32 f32", Bytes: 1e5}, 1},
		{device.Call{Kernel: "Add", Types: "f32 f32", Bytes: 1e8}, 2 * 10. / 12},
	} {
		one, _ := alone(c.call)
		if got, known := beside(c.call); !known || math.Abs(got/one-c.want) > 0.1 {
			t.Errorf("%+v takes %.2f times as long beside another, want %.2f", c.call, got/one, c.want)
		}
	}
	if got, _ := p.RatesBeside(1, 1)(product(512, 512, 512)); got == 0 {
		t.Error("one rank is not predicted")
	}
}

// Nothing is said of a product whose operands were not measured; a pass over memory is like others.
func TestWhatWasNotMeasuredIsSaid(t *testing.T) {
	rate := (&Profile{Sections: []Section{invented(1, 1)}}).Rates(1)
	c := product(256, 256, 256)
	c.Types = "f32 bf16 bf16 e4m3"
	if _, known := rate(c); known {
		t.Error("a product of fp8 is known")
	}
	c.Types = "f32 f32 f32 bf16" // other storage, the same operands
	if s, known := rate(c); !known || math.Abs(s-costOf(c)) > 0.05*s {
		t.Errorf("a product with a result in f32: %v, %v", s, known)
	}
	other := device.Call{Kernel: "Scale", Types: "f32", Bytes: 1e6}
	if s, known := rate(other); !known || s < 1e6/41e9 || s > 1e6/9e9 {
		t.Errorf("a pass over memory that was not measured: %v s, %v", s, known)
	}
}

func TestAProfileIsKept(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "LocalAppData", "HOME"} {
		t.Setenv(name, dir)
	}
	p := &Profile{Key: Key{"A/B CPU @ 3 GHz", "avx2", "0.1.0"}, Sections: []Section{invented(2, 2), invented(1, 1)}}
	if _, err := Load(p.Key); !errors.Is(err, ErrNone) {
		t.Errorf("without a profile: %v", err)
	}
	path, err := p.Save()
	if err != nil || strings.ContainsAny(filepath.Base(path), "/ @") {
		t.Fatal(path, err)
	}
	got, err := Load(p.Key)
	if err != nil || len(got.Sections) != 2 || got.Sections[0].Threads != 1 ||
		got.Sections[1].Samples[3] != p.Sections[0].Samples[3] {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Load(Key{"another", "avx2", "0.1.0"}); !errors.Is(err, ErrNone) {
		t.Errorf("another machine: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"cpu": 3`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(p.Key); err == nil || !strings.Contains(err.Error(), "anneal bench machine") {
		t.Errorf("a damaged profile: %v", err)
	}
}

// A few samples of like sizes do not make a constant cost, which smaller calls would pay.
func TestFewSamplesScaleWithTheWork(t *testing.T) {
	s := Section{Threads: 1}
	for _, side := range []int{500, 510, 520} {
		c := product(side, side, side)
		s.Samples = append(s.Samples, Sample{c, 1e-3})
	}
	rate := (&Profile{Sections: []Section{s}}).Rates(1)
	if got, _ := rate(product(50, 50, 50)); got > 1e-5 {
		t.Errorf("a thousandth of the operations takes %v s", got)
	}
}

// The peak for other numbers of threads is in proportion to that of the most threads measured up to this number.
func TestPeakGrowsWithThreads(t *testing.T) {
	p := &Profile{Sections: []Section{
		{Threads: 2, Peak: map[string]float64{"f32": 100}}, {Threads: 8, Peak: map[string]float64{"f32": 320}},
	}}
	for threads, want := range map[int]float64{1: 50, 2: 100, 4: 200, 8: 320, 16: 640} {
		if got := p.Peak(tensor.F32, threads); got != want {
			t.Errorf("%d threads: %v GFLOP/s, want %v", threads, got, want)
		}
	}
	if got := p.Peak(tensor.BF16, 2); got != 0 {
		t.Errorf("a peak that was not measured is %v", got)
	}
}
