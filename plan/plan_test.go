package plan

import (
	"testing"

	"anneal/attention"
	"anneal/device"
	"anneal/device/cpu/flash"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/model"
	"anneal/precision"
	"anneal/tensor"
)

func shape(layers, dim, heads, ffn, context, vocab int) model.Config {
	return model.Config{
		Layers: layers, Dim: dim, Heads: heads, KVHeads: heads, HeadDim: dim / heads, FFN: ffn, Context: context, Vocab: vocab,
		TieEmbeddings: true, RopeTheta: 1e4, NormEps: 1e-5, InitStd: 0.02,
	}
}

var (
	tiny = shape(6, 384, 6, 1024, 256, 4096)
	m98  = shape(12, 768, 12, 2048, 512, 16384)
)

func estimate(t *testing.T, c model.Config, name string, sequences int) Estimate {
	t.Helper()
	p, err := precision.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return Memory(c, p, sequences, 2, Optimizer{Name: "adamw", State: 8 * model.Outline(c, p).Count()})
}

// The masters, gradients and moments are 16 bytes a parameter, whatever the activations are.
func TestMemoryHoldsSixteenBytesPerParameter(t *testing.T) {
	for _, precision := range []string{"bf16", "fp32"} {
		e := estimate(t, tiny, precision, 16)
		fixed := e.Bytes("parameters") + e.Bytes("gradients") + e.Bytes("optimizer state")
		if want := int64(16 * 12_194_688); fixed != want {
			t.Errorf("%s: %d bytes, want %d", precision, fixed, want)
		}
		if !e.Fits(e.Total()) || e.Fits(e.Total()-1) {
			t.Errorf("%s: Fits does not turn at the total %d", precision, e.Total())
		}
	}
}

// Only activations, scratch and the batch may grow with the micro-batch, and FP32 keeps at most twice what BF16 keeps.
func TestMemoryGrowsWithTheMicroBatchOnlyWhereItMust(t *testing.T) {
	one, four, single := estimate(t, m98, "bf16", 1), estimate(t, m98, "bf16", 4), estimate(t, m98, "fp32", 4)
	for i := range one {
		switch one[i].Name {
		case "activations":
			if a := four[i].Bytes; a > 4*one[i].Bytes || a < 4*one[i].Bytes-4096*256 {
				t.Errorf("activations: %d bytes for 4 sequences, %d for one", a, one[i].Bytes)
			}
			if a, b := single[i].Bytes, four[i].Bytes; a <= b || a > 2*b {
				t.Errorf("activations: fp32 %d bytes, bf16 %d", a, b)
			}
		case "scratch", "batch":
			if four[i].Bytes > 4*one[i].Bytes || four[i].Bytes <= one[i].Bytes {
				t.Errorf("%s: %d bytes for 4 sequences, %d for one", one[i].Name, four[i].Bytes, one[i].Bytes)
			}
		default:
			if four[i].Bytes != one[i].Bytes {
				t.Errorf("%s: grew from %d to %d with the micro-batch", one[i].Name, one[i].Bytes, four[i].Bytes)
			}
		}
	}
}

// What is planned for attention is what its kernels hold after a backward pass over a long row.
func TestAttentionTakesWhatIsPlanned(t *testing.T) {
	const length, workers = 1 << 11, 2
	tier, err := isa.Choose()
	if err != nil {
		t.Fatal(err)
	}
	p := pool.New(workers)
	t.Cleanup(p.Close)
	for _, pattern := range []string{"window:64", "longnet:64/1:2048/32"} {
		c := shape(1, 128, 2, 64, length, 256)
		list, err := attention.ParseList(pattern)
		if err != nil {
			t.Fatal(err)
		}
		c.Attention = list
		planned := estimate(t, c, "fp32", 1).Bytes("attention")
		layout, err := attention.Compile(list[0], length, c.Heads, 0)
		if err != nil {
			t.Fatal(err)
		}
		e := flash.New(tier, p)
		heads := device.Heads{Q: c.Heads, KV: c.KVHeads, Size: c.HeadDim}
		zeros := func(rows, cols int) *tensor.Tensor { return tensor.Of(make([]float32, rows*cols), rows, cols) }
		qkv, out, lse := zeros(length, heads.Cols()), zeros(length, c.Dim), zeros(c.Heads, length)
		mask := device.Mask{Len: length, Layout: layout}
		e.Forward(out, lse, qkv, heads, mask)
		e.Backward(zeros(length, heads.Cols()), out, out, lse, qkv, heads, mask)
		held := int64(e.ScratchBytes()) + attention.Bytes(layout)
		e.Close()
		if planned != held {
			t.Errorf("%s: %d bytes held, %d planned", pattern, held, planned)
		}
	}
}
