package tensor

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anneal/internal/filetest"
)

func TestSliceAndReshapeShareMemory(t *testing.T) {
	x := Of([]float32{0, 1, 2, 3, 4, 5}, 3, 2)
	row := x.Slice(1, 3)
	row.F32()[0] = 42
	if x.F32()[2] != 42 || row.Dim(0) != 2 {
		t.Fatalf("slice %v does not alias %v", row.F32(), x.F32())
	}
	flat := x.Reshape(6)
	if flat.F32()[2] != 42 {
		t.Fatal("reshape does not alias")
	}
}

func TestArenaHandsOutAlignedZeroedMemoryAndTakesItBack(t *testing.T) {
	a, err := NewArena("test", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	x := a.New(F32, 3)
	mark := a.Mark()
	y := a.New(BF16, 5, 7)
	for i, v := range y.BF16() {
		if v != 0 {
			t.Fatalf("element %d of fresh memory is %v", i, v)
		}
	}
	if a.Used() != 64+128 {
		t.Fatalf("used %d bytes, want 192: each tensor rounds up to %d", a.Used(), Align)
	}
	x.F32()[2] = 1
	a.Release(mark)
	if a.Used() != 64 || a.Peak() != 192 {
		t.Fatalf("used %d, peak %d after release; want 64, 192", a.Used(), a.Peak())
	}
}

func TestMeasuringArenaPredictsTheRealPeak(t *testing.T) {
	use := func(a *Arena) {
		a.New(F32, 10, 3)
		m := a.Mark()
		a.New(BF16, 1000)
		a.Release(m)
		a.New(F64, 7)
	}
	m := NewMeasure("m")
	use(m)
	a, err := NewArena("real", m.Peak())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	use(a)
	if a.Peak() != m.Peak() {
		t.Fatalf("real peak %d, measured %d", a.Peak(), m.Peak())
	}
}

func TestFullArenaPanicsWithTheSizes(t *testing.T) {
	if _, err := NewArena("small", -5); err == nil || !strings.Contains(err.Error(), "-5 bytes for small") {
		t.Errorf("a negative size: %v", err)
	}
	a, err := NewArena("small", 64)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer func() {
		text := fmt.Sprint(recover())
		for _, want := range []string{"small", "f32[17]", "68 bytes", "0 of 64"} {
			if !strings.Contains(text, want) {
				t.Errorf("panic %q does not say %q", text, want)
			}
		}
	}()
	a.New(F32, 17)
}

// A size that overflows an int must never look as if it fitted.
func TestMeasureOfAbsurdSizesStaysAbsurd(t *testing.T) {
	for _, shape := range [][]int{{1 << 40, 1 << 30}, {1 << 32, 1 << 32}, {1 << 61}, {3 << 30, 3 << 30, 4}} {
		m := NewMeasure("m")
		x := m.New(F32, shape...)
		if m.Peak() != measureLimit {
			t.Errorf("%v measures %d bytes, want %d", shape, m.Peak(), measureLimit)
		}
		for range 100 {
			m.New(F64, 1<<40)
		}
		if m.Peak() != measureLimit {
			t.Errorf("%v and more measure %d bytes, want %d", shape, m.Peak(), measureLimit)
		}
		if row := x.Slice(x.Dim(0)/2, x.Dim(0)/2+1); row.data != nil {
			t.Errorf("a slice of a tensor without memory points to %p", row.data)
		}
		if a, err := NewArena("absurd", m.Peak()); err == nil {
			a.Close()
			t.Errorf("an arena of %d bytes was reserved", m.Peak())
		}
	}
}

func TestArenaNewAllocatesNothingOnTheGoHeap(t *testing.T) {
	a, err := NewArena("test", 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var x Tensor
	if n := filetest.AllocsPerRun(100, func() { m := a.Mark(); x = a.New(F32, 4, 5); a.Release(m) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	_ = x
}

// Independent oracle: the nearest representable value, searched among all codes, ties to the even code.
func nearest(v float64, codes int, value func(int) float64) int {
	best, dist := 0, math.Inf(1)
	for c := range codes {
		x := value(c)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		d := math.Abs(x - v)
		if d < dist || d == dist && c&1 == 0 && best&1 == 1 {
			best, dist = c, d
		}
	}
	return best
}

func TestNarrowFormatsRoundToNearestEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float32Range(-440, 440).Draw(t, "v")
		if got, want := E4M3FromFloat32(v).Float32(), E4M3(nearest(float64(v), 256,
			func(c int) float64 { return float64(E4M3(c).Float32()) })).Float32(); got != want {
			t.Errorf("e4m3(%v) = %v, want %v", v, got, want)
		}
		if got, want := E5M2FromFloat32(v).Float32(), E5M2(nearest(float64(v), 256,
			func(c int) float64 { return float64(E5M2(c).Float32()) })).Float32(); got != want {
			t.Errorf("e5m2(%v) = %v, want %v", v, got, want)
		}
	})
}

// Values of reference tables (IEEE 754, OCP FP8, CUDA's cvt documentation).
func TestFormatGoldens(t *testing.T) {
	check := func(name string, got, want float64) {
		t.Helper()
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	bf := func(v float64) float64 { return float64(BF16FromFloat32(float32(v)).Float32()) }
	check("bf16 1.00390625", bf(1.00390625), 1)
	check("bf16 1.01171875", bf(1.01171875), 1.015625)
	check("bf16 1.005859375", bf(1.005859375), 1.0078125)
	check("bf16 0.1", bf(0.1), 0.10009765625)
	check("bf16 65504", bf(65504), 65536)
	check("bf16 3.4e38", bf(3.4e38), math.Inf(1))
	check("bf16 NaN", bf(math.NaN()), math.NaN())
	h := func(v float64) float64 { return float64(F16FromFloat32(float32(v)).Float32()) }
	check("fp16 0.1", h(0.1), 0.0999755859375)
	check("fp16 2049", h(2049), 2048)
	check("fp16 2051", h(2051), 2052)
	check("fp16 65519", h(65519), 65504)
	check("fp16 65520", h(65520), math.Inf(1))
	check("fp16 -2^-25", h(-0x1p-25), 0)
	check("fp16 2^-25·1.0001", h(0x1p-25*1.0001), 0x1p-24)
	e4 := func(v float64) float64 { return float64(E4M3FromFloat32(float32(v)).Float32()) }
	check("e4m3 0.1", e4(0.1), 0.1015625)
	check("e4m3 1/3", e4(1.0/3), 0.34375)
	check("e4m3 17", e4(17), 16)
	check("e4m3 18.9", e4(18.9), 18)
	check("e4m3 -0.0146", e4(-0.0146), -0.013671875)
	check("e4m3 2^-10", e4(0x1p-10), 0)
	check("e4m3 464", e4(464), 448)
	check("e4m3 465", e4(465), math.NaN())
	e5 := func(v float64) float64 { return float64(E5M2FromFloat32(float32(v)).Float32()) }
	check("e5m2 0.1", e5(0.1), 0.09375)
	check("e5m2 3.3", e5(3.3), 3.5)
	check("e5m2 61440", e5(61440), math.Inf(1))
	check("e5m2 61439", e5(61439), 57344)
	check("tf32 0.1", float64(RoundTF32(0.1)), 0.0999755859375)
}

func TestEveryCodeSurvivesARoundTrip(t *testing.T) {
	for c := range 1 << 16 {
		if b := BFloat16(c); b.Float32() == b.Float32() && BF16FromFloat32(b.Float32()) != b {
			t.Fatalf("bf16 %#04x does not round trip", c)
		}
		if h := Float16(c); h.Float32() == h.Float32() && F16FromFloat32(h.Float32()) != h {
			t.Fatalf("fp16 %#04x does not round trip", c)
		}
	}
	for c := range 1 << 8 {
		if b := E4M3(c); b.Float32() == b.Float32() && E4M3FromFloat32(b.Float32()) != b {
			t.Fatalf("e4m3 %#02x does not round trip", c)
		}
		if b := E5M2(c); b.Float32() == b.Float32() && E5M2FromFloat32(b.Float32()) != b {
			t.Fatalf("e5m2 %#02x does not round trip", c)
		}
	}
}

// Summing 0.01 ten thousand times: nearest rounding stalls at 4, stochastic rounding stays near 100.
func TestStochasticRoundingIsUnbiased(t *testing.T) {
	r := NewRNG(1, PurposeRound, 0)
	var nearest, stochastic BFloat16
	for i := range uint64(10000) {
		nearest = BF16FromFloat32(nearest.Float32() + 0.01)
		stochastic = BF16Stochastic(stochastic.Float32()+0.01, r.Uint32(i))
	}
	if nearest.Float32() != 4 {
		t.Errorf("nearest sum %v, want 4", nearest.Float32())
	}
	if s := stochastic.Float32(); s < 88 || s > 112 {
		t.Errorf("stochastic sum %v, want about 100", s)
	}
}

// Known-answer vectors of the Random123 distribution.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Philox(c.ctr, c.key); got != c.want {
			t.Errorf("Philox(%x, %x) = %x, want %x", c.ctr, c.key, got, c.want)
		}
	}
}

// Different seeds, purposes, steps and indices give different blocks: the map into Philox's key and counter loses
// nothing.
func TestStreamsNeverMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct {
			seed          uint64
			purpose, step uint32
			index         uint64
		}
		draw := func(label string) place {
			return place{
				rapid.Uint64().Draw(t, label+" seed"), rapid.Uint32().Draw(t, label+" purpose"),
				rapid.Uint32().Draw(t, label+" step"), rapid.Uint64().Draw(t, label+" index"),
			}
		}
		a, b := draw("a"), draw("b")
		same := NewRNG(a.seed, a.purpose, a.step).Block(a.index) == NewRNG(b.seed, b.purpose, b.step).Block(b.index)
		if same != (a == b) {
			t.Fatalf("%+v and %+v: equal blocks %v", a, b, same)
		}
	})
	// Neighbours, which random draws rarely hit.
	seen := map[[4]uint32]string{}
	for seed := range uint64(3) {
		for purpose := range PurposeData + 1 {
			for step := range uint32(3) {
				for index := range uint64(3) {
					at := fmt.Sprint(seed, purpose, step, index)
					b := NewRNG(seed|seed<<32, purpose, step).Block(index)
					if other, ok := seen[b]; ok {
						t.Fatalf("(seed, purpose, step, index) = %s and %s give the same block %x", at, other, b)
					}
					seen[b] = at
				}
			}
		}
	}
}

func TestNormalHasMeanZeroAndVarianceOne(t *testing.T) {
	r := NewRNG(7, PurposeInit, 3)
	const n = 100000
	var sum, sq float64
	for i := range uint64(n / 4) {
		for _, x := range r.Normals(i) {
			sum += x
			sq += x * x
		}
	}
	if mean := sum / n; math.Abs(mean) > 4/math.Sqrt(n) {
		t.Errorf("mean %v", mean)
	}
	if v := sq / n; math.Abs(v-1) > 4*math.Sqrt(2.0/n) {
		t.Errorf("variance %v", v)
	}
}

// The host can tell of a tensor in device memory what it is, and may not touch what it holds.
func TestTensorsOfDeviceMemoryCannotBeTouched(t *testing.T) {
	memory, closed := make([]byte, 4096+Align), 0
	a := Wrap("device", uintptr(ptr(memory))+Align-uintptr(ptr(memory))%Align, 4096, true,
		func() error { closed++; return nil })
	x := a.New(F32, 3, 4)
	row := x.Slice(1, 2)
	flat := row.Reshape(4)
	if at := uintptr(flat.Pointer()) - uintptr(x.Pointer()); at != 16 || !flat.Apart() || flat.Len() != 4 ||
		a.Used() != 64 {
		t.Errorf("row 1 lies %d bytes behind row 0, apart %v, of %d elements; %d bytes are used",
			at, flat.Apart(), flat.Len(), a.Used())
	}
	for name, touch := range map[string]func(){
		"Raw": func() { x.Raw() }, "F32": func() { flat.F32() }, "Float64": func() { row.Float64(0) },
		"SetFloat64": func() { x.SetFloat64(0, 1) },
	} {
		func() {
			defer func() {
				if r, ok := recover().(string); !ok || !strings.Contains(r, "device memory") {
					t.Errorf("%s: %v, want a panic that says where the tensor is", name, r)
				}
			}()
			touch()
		}()
	}
	for range 2 {
		if err := a.Close(); err != nil || closed != 1 || a.Backed() {
			t.Errorf("closed %d times, %v, backed %v", closed, err, a.Backed())
		}
	}
	runtime.KeepAlive(memory)
}

// Shapes whose size is negative or overflows must not become tensors without memory behind them.
func TestImpossibleShapesPanic(t *testing.T) {
	a, err := NewArena("a", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for want, make := range map[string]func(){
		"a dimension of -1":                          func() { a.New(F32, 2, -1) },
		"arena a is full: f32[1099511627776 1099511": func() { a.New(F32, 1<<40, 1<<40) },
		"view of [1099511627776 1099511627776] f32":  func() { View(F32, []byte{1}, 1<<40, 1<<40) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
					t.Errorf("%s, want %s", text, want)
				}
			}()
			make()
		}()
	}
	if a.Used() != 0 {
		t.Errorf("%d bytes are used", a.Used())
	}
}
