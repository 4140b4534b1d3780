package cpu

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// convolve computes the short convolution by its definition, token by token, and the gradients of Σ out·dout.
func convolve(x, taps, dout []float64, k, length int, start []int32) (out, dx, dtaps []float64) {
	cols := len(taps) / k
	out, dx, dtaps = make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(taps))
	for i := range len(x) / cols {
		for c := range cols {
			var seen []int // tokens, by tap from the last one
			for d := 0; d < k && i%length-d >= int(start[i]); d++ {
				seen = append(seen, i-d)
			}
			z := 0.0
			for d, at := range seen {
				z += taps[c*k+k-1-d] * x[at*cols+c]
			}
			open := 1 / (1 + math.Exp(-z))
			out[i*cols+c] = z * open
			dz := dout[i*cols+c] * open * (1 + z*(1-open))
			for d, at := range seen {
				dx[at*cols+c] += dz * taps[c*k+k-1-d]
				dtaps[c*k+k-1-d] += dz * x[at*cols+c]
			}
		}
	}
	return out, dx, dtaps
}

// On every tier, in every storage, the convolution and its gradients agree with the definition, in rows of documents;
// threads change no bit.
func TestShortConvIsItsDefinition(t *testing.T) {
	for _, tier := range isa.Tiers() {
		one, two := NewTier(tier, 1), NewTier(tier, 2)
		t.Cleanup(one.Close)
		t.Cleanup(two.Close)
		t.Run(tier.String(), rapid.MakeCheck(func(t *rapid.T) {
			types := []tensor.DType{tensor.F64, tensor.F32, tensor.BF16, tensor.F16}
			storage := rapid.SampledFrom(types).Draw(t, "dtype")
			wide, near, exact := tensor.F32, 1.0/64, 1e-5
			switch storage {
			case tensor.F64:
				wide, near, exact = tensor.F64, 1e-13, 1e-13
			case tensor.F32:
				near = 1e-5
			case tensor.F16:
				near = 1.0 / 512
			}
			k, cols := rapid.IntRange(1, 6).Draw(t, "k"), rapid.IntRange(1, 70).Draw(t, "C")
			rows, length := rapid.IntRange(1, 3).Draw(t, "rows"), rapid.IntRange(1, 60).Draw(t, "T")
			n := rows * length
			rng := tensor.NewRNG(rapid.Uint64().Draw(t, "seed"), tensor.PurposeData, 0)
			random := func(dt tensor.DType, stream uint32, rows, cols int) *tensor.Tensor {
				x := tensor.View(dt, make([]byte, rows*cols*dt.Size()), rows, cols)
				for i := range rows * cols {
					x.SetFloat64(i, rng.Normals(uint64(stream)<<32 | uint64(i))[0])
				}
				return &x
			}
			numbers := func(x *tensor.Tensor) []float64 {
				list := make([]float64, x.Len())
				for i := range list {
					list[i] = x.Float64(i)
				}
				return list
			}
			start := make([]int32, n)
			for i := range start {
				if at := i % length; at > 0 {
					if start[i] = start[i-1]; rng.Uint32(uint64(i))%8 == 0 {
						start[i] = int32(at)
					}
				}
			}
			mask := device.Mask{Len: length, Start: tensor.Of(start)}
			if rapid.Bool().Draw(t, "one document a row") {
				clear(start)
				mask.Start = nil
			}
			x, dout, taps := random(storage, 0, n, cols), random(storage, 1, n, cols), random(wide, 2, cols, k)
			dtaps := random(wide, 3, cols, k)
			before := numbers(dtaps)
			out, dx, sum := random(storage, 4, n, cols), random(storage, 5, n, cols), random(wide, 3, cols, k)
			one.ShortConv(out, x, taps, mask)
			one.ShortConvGrad(dx, dtaps, dout, x, taps, mask)
			wantOut, wantDX, wantTaps := convolve(numbers(x), numbers(taps), numbers(dout), k, length, start)
			for i := range wantTaps {
				wantTaps[i] += before[i]
			}
			for _, c := range []struct {
				what string
				got  *tensor.Tensor
				want []float64
				near float64
			}{{"out", out, wantOut, near}, {"dx", dx, wantDX, near}, {"dtaps", dtaps, wantTaps, exact * float64(n)}} {
				for i, got := range numbers(c.got) {
					if !(math.Abs(got-c.want[i]) <= c.near*(1+math.Abs(c.want[i]))) {
						t.Fatalf("%v, %d taps, %d columns, rows of %d: %s %d is %v, its definition %v",
							storage, k, cols, length, c.what, i, got, c.want[i])
					}
				}
			}
			again, dagain := random(storage, 6, n, cols), random(storage, 7, n, cols)
			two.ShortConv(again, x, taps, mask)
			two.ShortConvGrad(dagain, sum, dout, x, taps, mask)
			if !bytes.Equal(again.Raw(), out.Raw()) || !bytes.Equal(dagain.Raw(), dx.Raw()) ||
				!bytes.Equal(sum.Raw(), dtaps.Raw()) {
				t.Fatal("two threads give other bits than one")
			}
		}))
	}
}

// The convolution and its gradients agree with torch, in float64.
func TestShortConvIsThatOfTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/shortconv.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		K                             int
		Start                         []int32
		X, Taps, DOut, Out, DX, DTaps []float64
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	d := NewTier(isa.Generic, 1)
	defer d.Close()
	for i, c := range cases {
		n, cols := len(c.Start), len(c.Taps)/c.K
		x, taps := tensor.Of(c.X, n, cols), tensor.Of(c.Taps, cols, c.K)
		mask := device.Mask{Len: n, Start: tensor.Of(c.Start)}
		out, dx := tensor.Of(make([]float64, n*cols), n, cols), tensor.Of(make([]float64, n*cols), n, cols)
		dtaps := tensor.Of(make([]float64, len(c.Taps)), cols, c.K)
		d.ShortConv(out, x, taps, mask)
		d.ShortConvGrad(dx, dtaps, tensor.Of(c.DOut, n, cols), x, taps, mask)
		for what, pair := range map[string][2][]float64{
			"out": {out.F64(), c.Out}, "dx": {dx.F64(), c.DX}, "dtaps": {dtaps.F64(), c.DTaps},
		} {
			for j, want := range pair[1] {
				if got := pair[0][j]; !(math.Abs(got-want) <= 1e-13*(1+math.Abs(want))) {
					t.Errorf("case %d: %s %d is %v, torch has %v", i, what, j, got, want)
				}
			}
		}
	}
}

func TestShortConvAllocatesNothing(t *testing.T) {
	d := NewTier(isa.Tiers()[0], 2)
	defer d.Close()
	x, taps := tensor.Of(make([]float32, 40*24), 40, 24), tensor.Of(make([]float32, 24*4), 24, 4)
	out, sums := tensor.Of(make([]float32, 40*24), 40, 24), tensor.Of(make([]float32, 24*4), 24, 4)
	mask := device.Mask{Len: 20}
	if n := testing.AllocsPerRun(5, func() {
		d.ShortConv(out, x, taps, mask)
		d.ShortConvGrad(out, sums, x, x, taps, mask)
	}); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}
