package nn

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// Every element is Std times its number of the stream (seed, PurposeInit, index), for any length and number of
// workers.
func TestInitIsAPureFunction(t *testing.T) {
	const n = 3<<14 + 7 // several stretches, the last not a multiple of 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, workers := range []int{1, 3} {
		runtime.GOMAXPROCS(workers)
		p := Declare("w", Matrix, n)
		p.Std = 0.02
		p.Value = *tensor.Of(make([]float64, n))
		p.Init(device.Host{}, 5, 2)
		rng := tensor.NewRNG(5, tensor.PurposeInit, 2)
		for i, w := range p.Value.F64() {
			if want := 0.02 * rng.Normals(uint64(i / 4))[i%4]; w != want {
				t.Fatalf("%d workers: element %d is %v, want %v", workers, i, w, want)
			}
		}
	}
}

// The rows of each part of a fused weight have the part's own deviation, wherever in the stream's fours they begin.
func TestPartsStartWithTheirOwnStd(t *testing.T) {
	p := Declare("w", Matrix, 6, 3)
	p.Parts = []Part{{Rows: 1, Std: 2}, {Rows: 3, Std: 0}, {Rows: 2, Std: 0.5}}
	p.Value = *tensor.Of(make([]float64, 6*3), 6, 3)
	for i := range p.Value.Len() {
		p.Value.SetFloat64(i, 9) // memory that was used before
	}
	p.Init(device.Host{}, 5, 2)
	rng := tensor.NewRNG(5, tensor.PurposeInit, 2)
	for i, w := range p.Value.F64() {
		std := []float64{2, 0, 0, 0, 0.5, 0.5}[i/3]
		if want := std * rng.Normals(uint64(i / 4))[i%4]; w != want || std == 0 && math.Signbit(w) {
			t.Errorf("element %d is %v, want %v", i, w, want)
		}
	}
}

func TestInitDependsOnSeedAndIndex(t *testing.T) {
	values := func(seed uint64, index int) []float32 {
		p := Declare("w", Matrix, 64)
		p.Std = 1
		p.Value = *tensor.Of(make([]float32, 64))
		p.Init(device.Host{}, seed, index)
		return p.Value.F32()
	}
	first := values(1, 0)
	for _, other := range [][]float32{values(2, 0), values(1, 1), values(1<<32|1, 0)} {
		if slices.Equal(other, first) {
			t.Error("another seed or index gives the same weights")
		}
	}
}

func TestGainsStartAtOne(t *testing.T) {
	p := Declare("gain", Norm, 5)
	p.Value = *tensor.Of(make([]float32, 5))
	p.Init(device.Host{}, 1, 0)
	if want := []float32{1, 1, 1, 1, 1}; !slices.Equal(p.Value.F32(), want) {
		t.Errorf("gains %v, want %v", p.Value.F32(), want)
	}
}

func TestScalarsStartAsTold(t *testing.T) {
	p := Declare("mix", Scalar, 2)
	p.Start = []float64{1, 0.25}
	p.Value = *tensor.Of(make([]float32, 2))
	p.Init(device.Host{}, 1, 0)
	if want := []float32{1, 0.25}; !slices.Equal(p.Value.F32(), want) {
		t.Errorf("scalars %v, want %v", p.Value.F32(), want)
	}
}

// The angle of pair i at position p is p·θ^(−2i/E): turning pair by pair from position to position arrives there, too.
func TestRoPETablesAreRotations(t *testing.T) {
	const positions, e, theta = 300, 8, 10000.0
	a, err := tensor.NewArena("test", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	r := NewRoPE(device.Host{}, a, tensor.F64, positions, e, e, theta, RoPEScaling{}, 0)
	for i, wavelength := range []float64{1, 10, 100, 1000} { // θ^(2i/8) for θ = 10000
		cos, sin := 1.0, 0.0
		for p := range positions {
			c, s := r.Cos.F64()[p*e/2+i], r.Sin.F64()[p*e/2+i]
			if math.Abs(c-cos) > 1e-10 || math.Abs(s-sin) > 1e-10 {
				t.Fatalf("position %d, pair %d: (%v, %v), want (%v, %v)", p, i, c, s, cos, sin)
			}
			dc, ds := math.Cos(1/wavelength), math.Sin(1/wavelength)
			cos, sin = cos*dc-sin*ds, sin*dc+cos*ds
		}
	}
}
