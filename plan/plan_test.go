package plan

import (
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/tensor"
	"anneal/train"
)

// machine is a CPU with two threads and as much memory as a test gives it.
type machine struct {
	device.Unknown
	free int64
}

func (machine) Kernels() string     { return "avx2" }
func (machine) Threads() int        { return 2 }
func (m machine) FreeMemory() int64 { return m.free }

func load(t *testing.T, set ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load("", append([]string{"data.path=x", "model.vocab=4096"}, set...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func planOf(t *testing.T, m device.Properties, set ...string) *Plan {
	t.Helper()
	p, err := For(load(t, set...), m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var (
	tiny = []string{"model.layers=6", "model.dim=384", "model.heads=6", "model.ffn=1024", "model.context=256"}
	m98  = []string{
		"model.layers=12", "model.dim=768", "model.heads=12", "model.ffn=2048", "model.context=512",
		"model.vocab=16384", "train.batch_tokens=4096",
	}
)

// A run is refused by no figure but the one that its dry run shows: with exactly as much memory it fits, with a byte
// less it does not, and the refusal names the same number.
func TestARunIsRefusedByTheFigureOfItsDryRun(t *testing.T) {
	for _, set := range [][]string{
		nil, {"precision=fp32"}, {"precision=bf16_sr", "average.ema=0.99"},
		{"optimizer.name=muon", "memory.recompute=sqrt"}, {"memory.offload=optimizer"},
		{"memory.offload=optimizer,checkpoints", "memory.recompute=every_layer"},
		{"model.attention=window:64", "average.ema=0.99", "train.micro_batch=4"},
		{"precision=fp8", "optimizer.name=adam8bit"},
	} {
		set := append(slices.Clone(tiny), set...)
		cfg := load(t, set...)
		none := planOf(t, machine{free: 1}, set...)
		need := none.Memory.Total()
		if none.Fits || planOf(t, machine{free: need - 1}, set...).Fits {
			t.Errorf("%v: fits in less than the %d bytes that it needs", set, need)
		}
		exactly := planOf(t, machine{free: need}, set...)
		if !exactly.Fits || exactly.Memory.Total() != need {
			t.Errorf("%v: with the %d bytes that it needs it fits: %v, and needs %d",
				set, need, exactly.Fits, exactly.Memory.Total())
		}
		f, err := train.MeasureRun(cfg, machine{})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Refuse(need); err != nil {
			t.Errorf("%v: refused with the planned %d bytes: %v", set, need, err)
		}
		var refusal *train.MemoryError
		if err := f.Refuse(need - 1); !asMemory(err, &refusal) || refusal.Need != need {
			t.Errorf("%v: with a byte less than the planned %d the run is refused by %v", set, need, err)
		}
		// A copy for checkpoints is planned where there is room, and is no reason to refuse.
		room := need + f.CheckpointCopy()
		for _, c := range []struct {
			free   int64
			copied bool
		}{{need, false}, {room - 1, false}, {room, true}, {0, true}} {
			p := planOf(t, machine{free: c.free}, set...)
			has := slices.ContainsFunc(p.Memory, func(i Item) bool { return i.Name == "checkpoint copy" })
			if has != c.copied || !p.Fits || c.copied && p.Memory.Total() != room {
				t.Errorf("%v: with %d bytes a copy is planned: %v; total %d of %d",
					set, c.free, has, p.Memory.Total(), room)
			}
		}
	}
}

func asMemory(err error, to **train.MemoryError) bool {
	e, ok := err.(*train.MemoryError)
	*to = e
	return ok
}

// A teacher takes its weights, of a model of its own, and adds its forward pass to the operations. What it expects of a
// token takes 8·k + 8 bytes. A run with one is refused by the figure of its dry run as well.
func TestATeacherIsPlanned(t *testing.T) {
	set := append(slices.Clone(tiny), "distill.teacher=x", "distill.top_k=16", "train.micro_batch=4")
	if _, err := For(load(t, set...), machine{}); err == nil || !strings.Contains(err.Error(), "was not opened") {
		t.Errorf("a teacher of no known shape: %v", err)
	}
	teacher := load(t, m98...)
	teacher.Model.Vocab = 4096
	cfg := load(t, set...)
	cfg.SetTeacher(teacher.Model)
	p, err := For(cfg, machine{})
	if err != nil {
		t.Fatal(err)
	}
	alone := planOf(t, machine{}, append(slices.Clone(tiny), "train.micro_batch=4")...)
	policy, err := train.PolicyOf(cfg)
	if err != nil {
		t.Fatal(err)
	}
	short := teacher.Model
	short.Context = cfg.Model.Context // its tables are for the rows that it reads
	m := model.Outline(short, policy)
	need := model.Measure(short, policy, 1, short.Context, false).Params
	if got := p.Memory.Bytes(train.TeacherWeights); got != int64(need) || got < 4*m.Count() {
		t.Errorf("%d bytes of weights, want %d for %d of them", got, need, m.Count())
	}
	tokens := int64(4 * cfg.Model.Context)
	if got := p.Memory.Bytes(train.Batch) - alone.Memory.Bytes(train.Batch); got != tokens*(8*16+8) {
		t.Errorf("what it expects takes %d bytes of %d tokens", got, tokens)
	}
	if got, want := p.FLOPsPerToken-alone.FLOPsPerToken, m.FLOPsPerToken(cfg.Model.Context)/3; got != want {
		t.Errorf("%g operations a token, want %g", got, want)
	}
	free := machine{free: p.Memory.Total() - p.Memory.Bytes(checkpointCopy)}
	f, err := train.MeasureRun(cfg, machine{})
	if err != nil || f.Total() != free.free || f.Refuse(free.free) != nil || f.Refuse(free.free-1) == nil {
		t.Errorf("%d bytes are planned, and the run needs %d: %v", free.free, f.Total(), err)
	}
}

// The masters, gradients and moments are 16 bytes a parameter, whatever the activations are.
func TestMemoryHoldsSixteenBytesPerParameter(t *testing.T) {
	for _, precision := range []string{"bf16", "fp32"} {
		e := planOf(t, machine{}, append([]string{"precision=" + precision}, tiny...)...).Memory
		fixed := e.Bytes("parameters") + e.Bytes("gradients") + e.Bytes("optimizer state")
		if want := int64(16 * 12_194_688); fixed != want {
			t.Errorf("%s: %d bytes, want %d", precision, fixed, want)
		}
	}
}

// Only activations, scratch and the batch may grow with the micro-batch, and FP32 keeps at most twice what BF16 keeps.
func TestMemoryGrowsWithTheMicroBatchOnlyWhereItMust(t *testing.T) {
	estimate := func(set ...string) Estimate {
		return planOf(t, machine{}, append(slices.Clone(m98), set...)...).Memory
	}
	one, four := estimate("train.micro_batch=1"), estimate("train.micro_batch=4")
	single := estimate("train.micro_batch=4", "precision=fp32")
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

// card is a device with memory of its own that needs scratch memory for attention.
type card struct{ device.Unknown }

func (card) Name() string    { return "a card" }
func (card) Apart() bool     { return true }
func (card) LogitBytes() int { return 64 << 20 }

// A plan asks the device: what it takes beside the arenas, how large its logits may be, whose memory it is.
func TestThePlanAsksTheDevice(t *testing.T) {
	cpu, far := planOf(t, machine{}, tiny...), planOf(t, card{}, tiny...)
	if cpu.Device != "avx2, 2 threads" || far.Device != "a card" {
		t.Errorf("the devices are %q and %q", cpu.Device, far.Device)
	}
	if a, b := cpu.Memory.Bytes("process"), far.Memory.Bytes("process"); a == 0 || b != 0 {
		t.Errorf("the process takes %d bytes of the host's memory and %d of the card's", a, b)
	}
	if a, b := cpu.Memory.Bytes("scratch"), far.Memory.Bytes("scratch"); b <= a {
		t.Errorf("larger chunks of logits take %d bytes of scratch memory, not more than %d", b, a)
	}
	if far.Memory[len(far.Memory)-1].Name == "checkpoint copy" {
		t.Error("the copy of a checkpoint is planned in the card's memory")
	}
	scratch := planOf(t, busy{}, append([]string{"model.attention=window:64"}, tiny...)...).Memory
	if n := scratch.Bytes("attention") - planOf(t, machine{},
		append([]string{"model.attention=window:64"}, tiny...)...).Memory.Bytes("attention"); n != 1000 {
		t.Errorf("attention takes %d bytes more where kernels take 1000", n)
	}
	linear := append([]string{"model.attention=linear"}, tiny...)
	if n := planOf(t, busy{}, linear...).Memory.Bytes("attention"); n != 50 {
		t.Errorf("linear attention takes %d bytes where kernels take 50", n)
	}
	if n := scratch.Bytes("products"); n != 300 {
		t.Errorf("products take %d bytes where kernels take 300", n)
	}
}

// busy is a machine whose kernels take memory.
type busy struct{ machine }

func (busy) ProductScratch(tensor.DType) int { return 300 }

func (busy) AttentionScratch(tensor.DType, int, device.Heads, device.Mask) int { return 1000 }

func (busy) LinearAttentionScratch(tensor.DType, int, int, device.Heads, bool) int { return 50 }
