package cluster

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"anneal/hardware"
	_ "anneal/internal/torture"
	"anneal/plan"
)

func run(t *testing.T, name, on, mesh string) *Run {
	t.Helper()
	recipe, err := LookupRecipe(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Parse(on)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseMesh(mesh, c.Devices)
	if err != nil {
		t.Fatal(err)
	}
	m.Zero, m.Micro, m.Recompute, m.Precision = 1, 1, None, hardware.BF16
	return &Run{Shape: recipe.Shape, Mesh: m, Batch: recipe.Batch, Cluster: c, Stack: Modern}
}

// Parameters are those that the models' papers print.
func TestParametersOfRecipes(t *testing.T) {
	for name, want := range map[string][2]float64{
		"llama2-7b": {6.738e9, 6.738e9}, "llama2-70b": {68.977e9, 68.977e9}, "llama3-405b": {405.85e9, 405.85e9},
		"mixtral-8x7b": {46.7e9, 12.9e9}, "qwen3-235b-a22b": {235e9, 22e9},
	} {
		r, err := LookupRecipe(name)
		if err != nil {
			t.Fatal(err)
		}
		all, active := r.Shape.Parameters()
		if math.Abs(all/want[0]-1) > 0.01 || math.Abs(active/want[1]-1) > 0.015 {
			t.Errorf("%s has %.2fB parameters, %.2fB active, want %.2fB and %.2fB", name, all/1e9, active/1e9,
				want[0]/1e9, want[1]/1e9)
		}
	}
}

// What a layer of a GPT with dropout keeps is the formula of Korthikanti et al.
func TestALayerKeepsWhatTheFormulaSays(t *testing.T) {
	r := run(t, "gpt3-175b", "8x8xa100-80gb", "tp=8,pp=8")
	r.Shape.Dropout, r.Stack.Attention = true, "unfused"
	want := plan.Layer{Tokens: 2048, Context: 2048, Dim: 12288, Heads: 96, Tensor: 8}.Activations()
	for _, c := range []struct {
		name      string
		sequence  bool
		recompute Recompute
		want      float64
	}{
		{"tensor", false, None, want.Tensor}, {"sequence", true, None, want.Sequence},
		{"selective", true, Attention, want.Selective},
	} {
		r.Mesh.Sequence, r.Mesh.Recompute = c.sequence, c.recompute
		if got := r.kept(0); math.Abs(got/c.want-1) > 0.06 {
			t.Errorf("%s: a layer keeps %.1f MB, the formula has %.1f", c.name, got/1e6, c.want/1e6)
		}
	}
}

// Phases add up to the step; a pipeline of even stages idles as its formula says, whatever its chunks.
func TestAStepIsItsPhases(t *testing.T) {
	r := run(t, "gpt3-175b", "8x8xa100-80gb", "tp=8,pp=8")
	r.Batch, r.Shape.Vocab = 64, 1
	r.Cluster.Levels[1].Latency, r.Cluster.Levels[1].Bandwidth = 0, 1e15
	for _, chunks := range []int{1, 2, 4} {
		r.Mesh.SetChunks(chunks)
		s, err := r.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		p := s.Phases
		sum := p.Forward + p.Backward + p.Recompute + p.Tensor + p.Other + p.Data + p.Optimizer + p.Idle
		if math.Abs(sum/s.Seconds-1) > 1e-9 {
			t.Errorf("phases are %.4f s, the step %.4f", sum, s.Seconds)
		}
		if want := 7 / float64(64*chunks+7); math.Abs(s.Bubble-want) > 0.002 {
			t.Errorf("%d chunks: idle %.4f, want %.4f", chunks, s.Bubble, want)
		}
	}
}

// A shortened simulation ends when the whole one does.
func TestTheSteadyStateIsContinued(t *testing.T) {
	for _, mesh := range []string{"tp=8,pp=8,dp=2", "tp=4,pp=8,vpp=2,dp=4", "tp=8,dp=16"} {
		r := run(t, "llama2-70b", "16x8xh100-80gb", mesh)
		r.Batch = 256
		whole, err := r.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		short, err := r.Shortened()
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(short.Seconds/whole.Seconds-1) > 1e-6 || short.Simulated >= whole.Simulated {
			t.Errorf("%s: %.6f s of %d micro-batches, %.6f of %d", mesh, short.Seconds, short.Simulated, whole.Seconds,
				whole.Simulated)
		}
		if mesh := r.quick(); math.Abs(mesh.Seconds/whole.Seconds-1) > 0.1 {
			t.Errorf("the closed form has %.3f s, the lists %.3f", mesh.Seconds, whole.Seconds)
		}
	}
}

// The search finds a mesh at least as fast as the one of the paper on Llama 3, on the same cluster.
func TestTheSearchFindsAsGoodAMeshAsThePublished(t *testing.T) {
	r := run(t, "llama3-405b", "1024x8xh100-80gb", "dp=64,tp=8,pp=16,vpp=2")
	published, err := r.Shortened()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Find(*r)
	if err != nil {
		t.Fatal(err)
	}
	if found.Best == nil || found.Best.Step.Seconds > published.Seconds {
		t.Fatalf("the search finds %+v, the paper's mesh takes %.3f s", found.Best, published.Seconds)
	}
	for i, f := range found.Front {
		if f.Room < 1-Usable-1e-9 {
			t.Errorf("%s leaves %.3f of memory", f.Mesh, f.Room)
		}
		for _, g := range found.Front[:i] {
			if g.Step.Seconds <= f.Step.Seconds && g.Cost <= f.Cost && g.Room >= f.Room {
				t.Errorf("%s is worse than %s in everything", f.Mesh, g.Mesh)
			}
		}
	}
}

// With one micro-batch ZeRO-2 takes the time of ZeRO-1; with more, each sends its gradients. It keeps fewer of them.
func TestZero2SendsGradientsOfEveryMicroBatch(t *testing.T) {
	r := run(t, "llama2-7b", "8x8xh100-80gb", "")
	for _, c := range []struct {
		batch int
		more  bool
	}{{64, false}, {1024, true}} {
		r.Batch, r.Mesh.Zero = c.batch, 1
		one, err := r.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		r.Mesh.Zero = 2
		two, err := r.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		if more := two.Phases.Data > one.Phases.Data; more != c.more || two.Seconds < one.Seconds {
			t.Errorf("batch %d: messages of gradients take %.4f s, with ZeRO-1 %.4f", c.batch, two.Phases.Data,
				one.Phases.Data)
		}
	}
	found, err := Find(*r)
	if err != nil {
		t.Fatal(err)
	}
	if found.Best.Mesh.Zero != 2 {
		t.Errorf("the best mesh is %s, with ZeRO-2 more sequences fit", found.Best.Mesh)
	}
	one := run(t, "llama2-7b", "1xh200-141gb", "")
	one.Batch, one.Shape.Layers = 8, 8
	if found, err = Find(*one); err != nil || found.Best == nil || found.Best.Mesh.Zero != 0 {
		t.Errorf("one device: %v %+v", err, found)
	}
}

// 70B on eight devices of 80 GB is refused with the arithmetic.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	found, err := Find(*run(t, "llama2-70b", "8xh100-80gb", ""))
	if err != nil {
		t.Fatal(err)
	}
	if found.Best != nil || !strings.Contains(found.Advice, "155 GB on each of 8 devices") ||
		!strings.Contains(found.Advice, "17 devices are the least") {
		t.Errorf("the search says %+v %s", found.Best, found.Advice)
	}
}

func TestMeshesThatDoNotMultiplyAreRefusedAtOnce(t *testing.T) {
	r := run(t, "llama2-70b", "16x8xh100-80gb", "dp=3,tp=5,pp=81,ep=2")
	err := r.Check()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"1215 ranks", "tp=5 does not divide 64 heads", "more parts than the 80 layers", "no experts",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestPerfettoHasEveryComputation(t *testing.T) {
	r := run(t, "llama2-7b", "8xa100-80gb", "pp=8")
	r.Batch = 8
	s, err := r.Simulate()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Perfetto(&b); err != nil {
		t.Fatal(err)
	}
	var trace struct{ TraceEvents []struct{ Name string } }
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	computed := 0
	for _, e := range trace.TraceEvents {
		if !strings.Contains(e.Name, "receive") {
			computed++
		}
	}
	if computed != 8*8*2 {
		t.Errorf("the trace has %d computations, want %d", computed, 8*8*2)
	}
}
