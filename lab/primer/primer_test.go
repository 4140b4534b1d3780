package primer

import (
	"math"
	"slices"
	"testing"

	_ "anneal/internal/torture"
	"anneal/tensor"
)

// The numbers of narrow formats against their conversions, which read bit patterns, and those of the others against the
// language.
func TestFormatsAreThoseOfTheirBits(t *testing.T) {
	for _, x := range []struct {
		name                      string
		largest, normal, smallest float64
	}{
		{"fp64", math.MaxFloat64, 0x1p-1022, math.SmallestNonzeroFloat64},
		{"fp32", math.MaxFloat32, 0x1p-126, math.SmallestNonzeroFloat32},
		{"bf16", float64(tensor.BFloat16(0x7f7f).Float32()), float64(tensor.BFloat16(0x0080).Float32()),
			float64(tensor.BFloat16(1).Float32())},
		{"fp16", float64(tensor.Float16(0x7bff).Float32()), float64(tensor.Float16(0x0400).Float32()),
			float64(tensor.Float16(1).Float32())},
		{"e4m3", float64(tensor.E4M3(0x7e).Float32()), float64(tensor.E4M3(0x08).Float32()),
			float64(tensor.E4M3(1).Float32())},
		{"e5m2", float64(tensor.E5M2(0x7b).Float32()), float64(tensor.E5M2(0x04).Float32()),
			float64(tensor.E5M2(1).Float32())},
	} {
		f, ok := formatOf(x.name)
		if !ok || f.Largest() != x.largest || f.SmallestNormal() != x.normal || f.Smallest() != x.smallest {
			t.Errorf("%+v: %g is largest, %g and %g are smallest", x, f.Largest(), f.SmallestNormal(), f.Smallest())
		}
	}
	if f, _ := formatOf("fp32"); f.Epsilon() != float64(math.Nextafter32(1, 2)-1) {
		t.Errorf("FP32: %g between 1 and the next", f.Epsilon())
	}
	if f, _ := formatOf("tf32"); f.Epsilon() != 0x1p-10 || tensor.RoundTF32(1+0x1p-10) != 1+0x1p-10 {
		t.Error("TF32 has another mantissa")
	}
}

// Figures of the literature: 16 and 18 bytes of mixed precision, ZeRO's figure 1 (7.5B parameters on 64 ranks), AdamW's
// 8 bytes, a third more operations at most.
func TestTablesHaveTheFiguresOfTheLiterature(t *testing.T) {
	if a, b := Splits[1].Bytes(), Splits[2].Bytes(); a != 16 || b != 18 {
		t.Errorf("mixed precision takes %g and %g bytes", a, b)
	}
	for stage, want := range []float64{120, 31.4, 16.6, 1.9} {
		if got := 7.5 * ZeROBytes(stage, 64); math.Abs(got-want) > 0.05 {
			t.Errorf("ZeRO %d: %.2f GB, the paper has %g", stage, got, want)
		}
	}
	for name, want := range map[string]float64{"sgd": 0, "lion": 4, "adamw": 8, "ademamix": 12, narrowMoments: 4} {
		if each, _, err := StateOf("7B", name); err != nil || math.Abs(each-want) > 1e-3 {
			t.Errorf("%s keeps %g bytes a parameter, want %g: %v", name, each, want, err)
		}
	}
	all, _, err := Recomputed("none")
	if err != nil {
		t.Fatal(err)
	}
	for _, strategy := range Recomputations[1:] {
		if kept, extra, err := Recomputed(strategy); err != nil || kept >= all || extra <= 0 || extra > 1.0/3 {
			t.Errorf("%s keeps %.3g of %.3g bytes for %.3g more operations: %v", strategy, kept, all, extra, err)
		}
	}
}

// Every table is found by its name, by other names and by those of its rows, and has a cell for each column.
func TestTablesAreFound(t *testing.T) {
	for name, want := range map[string]string{
		"formats": "formats", "BF16": "formats", "fp8": "formats", "e5m2": "formats", "mxfp8": "formats",
		"soap": "optimizers", "adamw": "optimizers",
		"muon": "optimizers", "zero": "zero", "fsdp": "zero", "amp": "mixed-precision", "recompute": "recompute",
		"": "", "model": "", "float": "",
	} {
		table, err := Find(name)
		if err != nil || (table == nil) != (want == "") || table != nil && table.Name != want {
			t.Errorf("%q: %+v, %v, want %q", name, table, err, want)
		}
	}
	for _, name := range Topics() {
		table, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) || slices.Contains(row, "") || slices.Contains(row, "NaN") {
				t.Errorf("%s: %q for %q", name, row, table.Columns)
			}
		}
	}
}

// Questions differ, have one right answer among three or four, and come again with their seed.
func TestQuizAsksWhatHasOneAnswer(t *testing.T) {
	for seed := range uint64(40) {
		list, err := Quiz(seed, 12)
		if err != nil || len(list) != 12 {
			t.Fatalf("%d questions: %v", len(list), err)
		}
		texts := map[string]bool{}
		for _, q := range list {
			texts[q.Text] = true
			different := slices.Compact(slices.Sorted(slices.Values(q.Choices)))
			if len(different) != len(q.Choices) || len(different) < 3 || q.Right < 0 || q.Right >= len(q.Choices) ||
				q.Why == "" {
				t.Errorf("seed %d: %+v", seed, q)
			}
		}
		if len(texts) != 12 {
			t.Errorf("seed %d: %d different questions", seed, len(texts))
		}
		again, err := Quiz(seed, 12)
		if err != nil || !slices.EqualFunc(list, again, func(a, b Question) bool {
			return a.Text == b.Text && slices.Equal(a.Choices, b.Choices)
		}) {
			t.Errorf("seed %d: other questions", seed)
		}
	}
}
