package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

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
	m, _, err := ParseMesh(mesh, c.Devices)
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
		if s.HFU < s.MFU {
			t.Errorf("the hardware computes at %v of its peak, less than the model's %v", s.HFU, s.MFU)
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
		if mesh := r.newCandidate(r.parts()).quick(); math.Abs(mesh.Seconds/whole.Seconds-1) > 0.1 {
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
	found, err := Find(*r, nil)
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
	found, err := Find(*r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if found.Best.Mesh.Zero < 2 {
		t.Errorf("the best mesh is %s, with ZeRO-2 and 3 more sequences fit", found.Best.Mesh)
	}
	one := run(t, "llama2-7b", "1xh200-141gb", "")
	one.Batch, one.Shape.Layers = 8, 8
	if found, err = Find(*one, nil); err != nil || found.Best == nil || found.Best.Mesh.Zero != 0 {
		t.Errorf("one device: %v %+v", err, found)
	}
}

// 70B on eight devices of 80 GB is refused with the arithmetic.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	found, err := Find(*run(t, "llama2-70b", "8xh100-80gb", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if found.Best != nil || !strings.Contains(found.Advice, "128 GiB on each of 8 devices") ||
		!strings.Contains(found.Advice, "14 devices are the least") {
		t.Errorf("the search says %+v %s", found.Best, found.Advice)
	}
	long := run(t, "llama2-7b", "8xh100-80gb", "")
	long.Shape.Context, long.Batch = 1<<22, 8
	found, err = Find(*long, Axes{"tp": true, "pp": true})
	if err != nil || found.Best != nil || !strings.Contains(found.Advice, "12.6 GiB on each") ||
		!strings.Contains(found.Advice, "shorter --context") {
		t.Errorf("%v, %+v", err, found)
	}
}

// Products in a precision that the accelerator lacks take the time of BF16, without casts.
func TestAMissingPrecisionTakesTheTimeOfBF16(t *testing.T) {
	r := run(t, "llama2-7b", "8xa100-80gb", "tp=8")
	seconds := func(p hardware.Precision) float64 {
		r.Mesh.Precision = p
		step, err := r.Shortened()
		if err != nil {
			t.Fatal(err)
		}
		return step.Seconds
	}
	bf16 := seconds(hardware.BF16)
	for _, p := range []hardware.Precision{hardware.FP8, hardware.FP4} {
		if got := seconds(p); got != bf16 {
			t.Errorf("a step takes %v s in %s, %v s in bf16", got, p, bf16)
		}
	}
}

// A mesh that is at fault for a model whose state fits is told apart from a model that is too large.
func TestAMeshAtFaultIsToldApart(t *testing.T) {
	if text := run(t, "llama2-70b", "16x8xh100-80gb", "").TooSmall(); !strings.Contains(text, "8.0 GiB on each") ||
		!strings.Contains(text, "The mesh is at fault") {
		t.Error(text)
	}
	small := run(t, "llama2-70b", "16x8xh100-80gb", "")
	small.Cluster.Accelerator.Memory = gibi
	if text := small.TooSmall(); !strings.Contains(text, "no room for a model") {
		t.Error(text)
	}
}

// Stages have all parameters together, with layers that predict further tokens; heads of keys and values are there once
// for each rank of tensor parallelism that they are too few for.
func TestStagesHoldAllParameters(t *testing.T) {
	sum := func(r *Run) (n float64) {
		for i, st := range r.newCandidate(r.parts()).stages {
			shared, experts := r.stageParameters(st, i)
			n += shared*float64(r.Mesh.Tensor) + experts*float64(max(r.Mesh.Expert, 1))
		}
		return n
	}
	r := run(t, "deepseek-v3", "128x8xh100-80gb", "pp=16,vpp=2,ep=64")
	all, _ := r.Shape.Parameters()
	if got := sum(r); math.Abs(got/all-1) > 1e-6 {
		t.Errorf("stages have %.2fB parameters, the model %.2fB", got/1e9, all/1e9)
	}
	activations := func() float64 {
		c := r.newCandidate(r.parts())
		return r.stageMemory(c.stages[15], 15).Activations
	}
	with := activations()
	if r.Shape.Extra = 0; activations() >= with {
		t.Errorf("a layer more keeps %.1f MB, none %.1f", with/1e6, activations()/1e6)
	}
	r = run(t, "llama2-70b", "16x8xh100-80gb", "tp=16,pp=2")
	all, _ = r.Shape.Parameters()
	all += float64(r.Shape.Layers * 2 * 8 * r.Shape.HeadDim * r.Shape.Dim)
	if got := sum(r); math.Abs(got/all-1) > 1e-6 {
		t.Errorf("16 ranks have %.2fB parameters of 8 heads of keys and values, want %.2fB", got/1e9, all/1e9)
	}
}

// Whatever the text of a mesh, it is refused or becomes a mesh that reads back the same, and a run with it is checked
// and, where it is valid, timed.
func FuzzParseMesh(f *testing.F) {
	f.Add("dp=16,tp=8,pp=8", 1024)
	f.Add("tp=4194304,pp=4194304,cp=4194304", 1)
	f.Add("vpp=4,pp=4,,ep=0", 16)
	f.Fuzz(func(t *testing.T, text string, devices int) {
		m, given, err := ParseMesh(text, devices)
		if err != nil {
			return
		}
		again, _, err := ParseMesh(strings.Fields(m.String())[0], devices)
		if err != nil || again != m || given == nil {
			t.Fatalf("%q is %+v, and then %+v, %v", text, m, again, err)
		}
		known, err := hardware.Lookup("h100")
		if err != nil {
			t.Fatal(err)
		}
		if devices = 1 + devices%256; devices < 1 {
			return
		}
		recipe, _ := LookupRecipe("mixtral-8x7b")
		m.Micro, m.Recompute, m.Precision = 1, None, hardware.BF16
		r := &Run{Shape: recipe.Shape, Mesh: m, Batch: 256, Cluster: known.Cluster(devices, 8), Stack: Modern}
		if r.Check() != nil {
			return
		}
		if s, err := r.Shortened(); err != nil || !(s.Seconds > 0) || math.IsInf(s.Seconds, 0) {
			t.Fatalf("%s: %+v, %v", m, s, err)
		}
	})
}

func TestMeshesThatDoNotMultiplyAreRefusedAtOnce(t *testing.T) {
	r := run(t, "llama2-70b", "16x8xh100-80gb", "dp=3,tp=5,pp=81,ep=2")
	err := r.Check()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"1215 ranks", "tp=5 does not divide 64 heads", "pp=81 is more than the 80 layers", "no experts",
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
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			Ts, Dur  float64
			Pid, Tid int
			Args     map[string]string
		}
	}
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	computed, names, end := 0, 0, map[int]float64{}
	for _, e := range trace.TraceEvents {
		switch {
		case e.Ph == "M":
			if e.Name == "thread_name" && e.Args["name"] == fmt.Sprint("stage ", e.Tid) {
				names++
			}
		case e.Ph != "X" || e.Dur <= 0 || e.Ts < end[e.Tid]-1e-6 || e.Tid < 0 || e.Tid > 7:
			t.Errorf("%+v is no event after %.3f µs", e, end[e.Tid])
		case !strings.Contains(e.Name, "receive"):
			computed++
		}
		end[e.Tid] = max(end[e.Tid], e.Ts+e.Dur)
	}
	if computed != 8*8*2 || names != 8 {
		t.Errorf("the trace has %d computations in %d rows, want %d in 8", computed, names, 8*8*2)
	}
}

// Axes that are given are kept; the search goes over the others, as well as the whole search does with luck.
func TestASearchKeepsTheAxesThatAreGiven(t *testing.T) {
	r := run(t, "llama2-70b", "16x8xh100-80gb", "tp=4,pp=5")
	whole, err := Find(*r, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Mesh.Zero, r.Mesh.Micro, r.Mesh.Recompute = 2, 4, Full
	for axis, holds := range map[string]func(Mesh) bool{
		"tp": func(m Mesh) bool { return m.Tensor == 4 }, "zero": func(m Mesh) bool { return m.Zero == 2 },
		"micro": func(m Mesh) bool { return m.Micro == 4 }, "vpp": func(m Mesh) bool { return m.Chunks == 1 },
		"recompute": func(m Mesh) bool { return m.Recompute == Full },
	} {
		found, err := Find(*r, Axes{axis: true})
		if err != nil || found.Best == nil {
			t.Fatalf("%s: %v %+v", axis, err, found)
		}
		if found.Tried >= whole.Tried || found.Best.Step.Seconds < whole.Best.Step.Seconds*(1-1e-9) {
			t.Errorf("%s: %d meshes, the best %.3f s; of all %d it is %.3f s", axis, found.Tried,
				found.Best.Step.Seconds, whole.Tried, whole.Best.Step.Seconds)
		}
		for _, f := range found.Front {
			if !holds(f.Mesh) {
				t.Errorf("%s: %s is on the front", axis, f.Mesh)
			}
		}
		for _, n := range found.Neighbours {
			if !holds(n.Mesh) {
				t.Errorf("%s: %s is a neighbour", axis, n.Mesh)
			}
		}
	}
	found, err := Find(*r, Axes{"pp": true})
	if err != nil || found.Best != nil || !strings.Contains(found.Advice, "pp=5 does not divide the 128 devices") {
		t.Errorf("%v, %+v", err, found)
	}
}

// A cluster of 16,384 devices is searched in seconds.
func TestALargeClusterIsSearchedInSeconds(t *testing.T) {
	r := run(t, "llama3-405b", "2048x8xh100-80gb", "")
	start := time.Now()
	found, err := Find(*r, nil)
	if err != nil || found.Best == nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%d meshes took %v", found.Tried, took)
	}
}

// The meshes of a search are counted once each: those that fit and are slower, and those of each reason.
func TestASearchAccountsForEveryMesh(t *testing.T) {
	found, err := Find(*run(t, "llama2-7b", "8x8xh100-80gb", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, changes := 0, map[string]bool{}
	for _, r := range found.Refused {
		sum += r.Count
	}
	if left := found.Tried - sum; left < 1 || left > 4*(finalists+int(1/clearly)) {
		t.Errorf("%d meshes were tried, %d are refused", found.Tried, sum)
	}
	for _, n := range found.Neighbours {
		changes[strings.Split(n.Change, "=")[0]] = true
		if n.Reason == "" || n.Mesh == found.Best.Mesh {
			t.Errorf("%+v", n)
		}
	}
	for _, axis := range []string{"tp", "pp", "zero", "recompute"} {
		if !changes[axis] {
			t.Errorf("no neighbour differs in %s", axis)
		}
	}
}

// No mesh that differs from the fastest in one axis is faster, and none of them changes an axis that is given.
func TestNoNeighbourOfTheFastestIsFaster(t *testing.T) {
	for _, c := range []struct{ name, on, mesh string }{
		{"llama2-7b", "512x8xa100", ""}, {"llama3-8b", "1024x8xa100", ""}, {"llama2-70b", "128x8xh100", ""},
		{"llama2-70b", "128x8xh100", "dp=16"}, {"llama2-70b", "16x8xh100", "pp=4"}, {"mixtral-8x7b", "16x8xh100", ""},
	} {
		r, fixed := run(t, c.name, c.on, ""), Axes{}
		if c.mesh != "" {
			m, axes, err := ParseMesh(c.mesh, r.Cluster.Devices)
			if err != nil {
				t.Fatal(err)
			}
			r.Mesh.Data, r.Mesh.Pipeline, fixed = m.Data, m.Pipeline, axes
		}
		s, err := Find(*r, fixed)
		if err != nil || s.Best == nil {
			t.Fatalf("%v: %v, %+v", c, err, s)
		}
		for _, n := range s.Neighbours {
			if strings.HasPrefix(n.Reason, "-") && !strings.HasPrefix(n.Reason, "-0.0 %") {
				t.Errorf("%v: the best is %v, and %s is faster: %s", c, s.Best.Mesh, n.Change, n.Reason)
			}
			if fixed["dp"] && n.Mesh.Data != r.Mesh.Data {
				t.Errorf("%v: the neighbour %s has dp=%d", c, n.Change, n.Mesh.Data)
			}
		}
		if len(fixed) == 0 {
			continue
		}
		wider, err := Find(*r, Axes{})
		if err != nil || wider.Best.Step.Seconds > s.Best.Step.Seconds*(1+1e-9) {
			t.Errorf("%v: free, the search finds %v, with given axes %v: %v", c, wider.Best.Step.Seconds,
				s.Best.Step.Seconds, err)
		}
	}
}

// The ranks that share experts are neighbours: within a node, their messages take the links of the node whatever tp is.
func TestExpertsAreExchangedBetweenNeighbours(t *testing.T) {
	other := func(mesh string) float64 {
		step, err := run(t, "qwen3-30b-a3b", "8xh100", mesh).Simulate()
		if err != nil {
			t.Fatal(err)
		}
		return step.Phases.Other
	}
	if alone, cut := other("dp=8,ep=8"), other("tp=8,ep=8"); cut > 1.5*alone {
		t.Errorf("messages of layers take %.3g s with tp=8, %.3g with tp=1", cut, alone)
	}
}

// Full recomputation also repeats the messages of experts.
func TestRecomputingRepeatsMessages(t *testing.T) {
	phases := func(how Recompute) Phases {
		r := run(t, "qwen3-30b-a3b", "16x8xh100", "ep=128")
		r.Mesh.Recompute = how
		step, err := r.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		return step.Phases
	}
	once, again := phases(None), phases(Full)
	if more := again.Recompute - once.Forward; more < 0.2*once.Other {
		t.Errorf("recomputation takes %.3g s, forward %.3g, messages of layers %.3g", again.Recompute, once.Forward,
			once.Other)
	}
}

// ZeRO-3 also sends the tables, which in a small model with a large vocabulary are nearly all parameters.
func TestZero3SendsTheTables(t *testing.T) {
	other := func(vocab int) float64 {
		r := run(t, "llama3-8b", "8x8xh100", "")
		r.Mesh.Zero, r.Shape.Vocab = 3, vocab
		step, err := r.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		return step.Phases.Other
	}
	if few, many := other(1<<10), other(1<<21); many < 2*few {
		t.Errorf("messages take %.3g s with 1,024 tokens, %.3g with 2 million", few, many)
	}
}

// A window shows a smaller share of a longer sequence.
func TestAWindowStaysWhenTheContextGrows(t *testing.T) {
	s := run(t, "mistral-7b", "8xh100", "").Shape
	for context, want := range map[int]int{2048: 2048, 8192: 6144, 32768: 7680} {
		s.Context = context
		if got := s.seen(); got != want {
			t.Errorf("of %d tokens a token sees %d before causality, want %d", context, got, want)
		}
	}
}

// slow is a cluster whose nodes are joined by a network that is slow by so many times.
func slow(t *testing.T, name, on, mesh string, by float64) *Run {
	r := run(t, name, on, mesh)
	r.Cluster.Levels[1].Bandwidth /= by
	return r
}

// Whatever crosses nodes takes longer on a slower network, messages between stages of which some share a node, too.
func TestWhatCrossesNodesDependsOnTheNetwork(t *testing.T) {
	for _, c := range []struct {
		on, mesh string
		crosses  bool
	}{
		{"16x8xh100", "tp=2,dp=2,pp=32", true}, {"2x8xh100", "tp=2,dp=1,pp=8", true},
		{"1x8xh100", "tp=2,dp=1,pp=4", false},
		{"4x8xh100", "tp=8,dp=1,pp=4", true}, {"2x4xh100", "tp=8", true},
	} {
		var seconds [2]float64
		for i, by := range []float64{1, 1e4} {
			r := slow(t, "llama2-70b", c.on, c.mesh, by)
			r.Batch = r.Mesh.Data * 64
			step, err := r.Simulate()
			if err != nil {
				t.Fatal(err)
			}
			seconds[i] = step.Seconds
		}
		if slower := seconds[1] > 1.2*seconds[0]; slower != c.crosses {
			t.Errorf("%s on %s: %.3f s a step, %.3f with a slow network", c.mesh, c.on, seconds[0], seconds[1])
		}
	}
}

// Sums of four ranks that lie across two nodes of six wait for the network, though four would fit in a node.
func TestGroupsMayLieAcrossTwoNodes(t *testing.T) {
	sums := func(mesh string) float64 {
		step, err := slow(t, "gpt3-175b", "2x6xh100", mesh, 1e4).Simulate()
		if err != nil {
			t.Fatal(err)
		}
		return step.Phases.Tensor
	}
	if across, inside := sums("tp=4,dp=1,pp=3"), sums("tp=3,dp=1,pp=4"); across < 100*inside {
		t.Errorf("sums take %.3g s across two nodes, %.3g within one", across, inside)
	}
}

// The search tries numbers of ranks that are no powers of two: for tensor parallelism those that divide a node, for
// experts all that divide them.
func TestTheSearchTriesWhatDividesNodesAndExperts(t *testing.T) {
	six, err := Find(*slow(t, "gpt3-175b", "16x6xh100", "", 100), nil)
	if err != nil || six.Best.Mesh.Tensor%3 != 0 {
		t.Errorf("nodes of six: %v, %v", err, six.Best)
	}
	if got := fmt.Sprint(tensors(&Shape{Heads: 96}, 6), tensors(&Shape{Heads: 12, KVHeads: 4}, 12)); got !=
		"[1 2 3 4 6] [1 2 4 12]" {
		t.Errorf("ranks of tensor parallelism: %s", got)
	}
	flat := run(t, "llama2-70b", "2x8xh100", "")
	flat.Cluster.Levels = []hardware.Level{{Name: "all", Bandwidth: 1e11}}
	if found, err := Find(*flat, nil); err != nil || found.Best == nil || found.Best.Mesh.Tensor == 1 {
		t.Errorf("a network of one level: %v, %+v", err, found)
	}
	r := run(t, "mixtral-8x7b", "2x8xh100", "")
	if got := fmt.Sprint(expertRanks(r, Mesh{Data: 8, Tensor: 1, Context: 1})); got != "[1 2 4 8]" {
		t.Errorf("ranks that share 8 experts: %s", got)
	}
}

// ZeRO 3 is tried in a pipeline, too: to fix it gives no faster mesh.
func TestZero3IsTriedInAPipeline(t *testing.T) {
	for _, c := range [][3]string{
		{"llama3-405b", "64x8xh100", "tp=1,pp=4"}, {"llama2-70b", "8x8xa100-40gb", "tp=8,pp=2"},
	} {
		best := func(fixed Axes) float64 {
			r := run(t, c[0], c[1], c[2])
			r.Mesh.Zero = 3
			s, err := Find(*r, fixed)
			if err != nil || s.Best == nil {
				t.Fatalf("%v: %+v, %v", c, s, err)
			}
			return s.Best.Step.Seconds
		}
		open, fixed := best(Axes{"tp": true, "pp": true}), best(Axes{"tp": true, "pp": true, "zero": true})
		if open > fixed*(1+1e-9) {
			t.Errorf("%v: %.3f s, with zero=3 %.3f s", c, open, fixed)
		}
	}
}

// More nodes are never slower, because the search may leave some idle.
func TestMoreNodesAreNotSlower(t *testing.T) {
	last := math.Inf(1)
	for _, nodes := range []string{"22", "23"} {
		s, err := Find(*run(t, "llama2-70b", nodes+"x8xh100", ""), nil)
		if err != nil || s.Best.Step.Seconds > last*(1+1e-9) {
			t.Errorf("%s nodes: %v, %v", nodes, s.Best, err)
		}
		last = s.Best.Step.Seconds
	}
}

// Weights that no other rank has are kept with ZeRO 3 too, and the search does not use it to make them vanish.
func TestZero3NeedsCopies(t *testing.T) {
	r := run(t, "llama2-7b", "8xh100", "tp=8")
	memory := func(zero int) float64 {
		r.Mesh.Zero = zero
		step, err := r.First(1)
		if err != nil {
			t.Fatal(err)
		}
		return r.Memory(step)[0].Weights
	}
	if a, b := memory(0), memory(3); a != b || a == 0 {
		t.Errorf("weights take %v bytes with zero=0, %v with zero=3", a, b)
	}
	s, err := Find(*run(t, "llama2-70b", "1x4xmi355x-288gb", ""), nil)
	if err != nil || s.Best.Mesh.Zero > 0 && s.Best.Mesh.Data*s.Best.Mesh.Context == 1 {
		t.Errorf("%v: %v", s.Best.Mesh, err)
	}
}

// Context parallelism keeps the keys and values that it gathers, of all ranks, and their gradients.
func TestGatheredKeysAndValuesTakeMemory(t *testing.T) {
	r := run(t, "llama3-8b", "16xh100", "cp=16")
	r.Shape.Context, r.Batch = 1<<20, 1
	with := r.working(1)
	alone := *r
	alone.Mesh.Context, alone.Shape.Context = 1, r.Shape.Context/16
	if got, want := with-alone.working(1), 2*2*2*float64(1<<20)*1024; got != want {
		t.Errorf("a layer needs %v bytes more with cp=16, want %v", got, want)
	}
	r = run(t, "deepseek-v3", "16xh100", "cp=16") // keys of 128 + 64 dimensions, values of 128
	if got, want := r.gatheredKV(), 2*float64(r.Shape.Context)*128*(128+64+128); got != want {
		t.Errorf("latent attention gathers %v bytes, want %v", got, want)
	}
}

// With ZeRO 3 the experts of two layers are gathered in two bytes, and their gradient is in four. Experts of which
// every rank has others are not gathered.
func TestGatheredExpertsTakeMemory(t *testing.T) {
	for expert, want := range map[int]float64{1: 8, 2: 4, 8: 0} { // bytes for each parameter of a layer's experts
		r := run(t, "mixtral-8x7b", "1x8xh100", fmt.Sprintf("dp=8,ep=%d", expert))
		r.Mesh.Zero = 3
		with := r.working(1)
		r.Mesh.Zero = 2
		shared, experts := r.Shape.layerParameters(0)
		if got := with - r.working(1) - 8*shared; math.Abs(got-want*experts) > 1 {
			t.Errorf("ep=%d: a layer's experts take %v bytes a parameter, want %v", expert, got/experts, want)
		}
	}
}

// Axes whose product overflows are refused.
func TestHugeAxesAreRefused(t *testing.T) {
	r := run(t, "llama2-70b", "4xh100", "")
	r.Mesh.Micro = 1 << 62
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "micro=") {
		t.Errorf("%v", err)
	}
}
