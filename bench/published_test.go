package bench

import (
	"math"
	"strings"
	"testing"

	"anneal/hardware"
	_ "anneal/internal/torture"
)

func predicted(t *testing.T) []*PublishedRun {
	t.Helper()
	list, err := PublishedRuns()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if err := p.Predict(); err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
	}
	return list
}

// Half of the published runs with a complete shape are predicted within 10 % of their time, four of five within 20 %;
// the runs that no constant was fitted on do not do worse.
func TestPublishedRunsArePredicted(t *testing.T) {
	list := predicted(t)
	for _, c := range []struct {
		name string
		keep func(*PublishedRun) bool
		runs int
	}{
		{"all", func(*PublishedRun) bool { return true }, 500},
		{"complete", (*PublishedRun).Complete, 300},
		{"not fitted on", func(p *PublishedRun) bool { return !p.Fitted }, 300},
		{"complete, not fitted on", func(p *PublishedRun) bool { return p.Complete() && !p.Fitted }, 180},
	} {
		if s := Summarise(list, c.keep); s.Runs < c.runs || s.Median > 0.1 || s.Within20 < 0.8 {
			t.Errorf("%s: %+v, want at least %d runs, a median error of at most 10 %% and 80 %% within 20 %%", c.name,
				s, c.runs)
		}
	}
}

// The constants in the table of accelerators are what fitting finds.
func TestTheConstantsAreThoseOfTheFit(t *testing.T) {
	list, err := PublishedRuns()
	if err != nil {
		t.Fatal(err)
	}
	var few []*PublishedRun
	for _, p := range list {
		if p.Accelerator == "tpu-v6e" {
			few = append(few, p)
		}
	}
	known, err := hardware.Lookup("tpu-v6e")
	if err != nil {
		t.Fatal(err)
	}
	got, want := FitPublished(few)["tpu-v6e"], known.Fitted
	for _, d := range [][2]float64{
		{got.Compute, want.Compute}, {got.Memory, want.Memory}, {got.Network, want.Network},
	} {
		if math.Abs(d[0]-d[1]) > 0.002 {
			t.Errorf("the fit finds %+v, the table has %+v", got, want)
		}
	}
}

// Rates become times as each source counts operations: with recomputation and whole attention, without, or halved.
func TestFiguresAreThoseOfTheirSource(t *testing.T) {
	const head = "id,set,layers,hidden,heads,ffn,mlp,vocab,seq_len,accelerator,n_gpu,tp,pp,micro_batch," +
		"global_batch_seqs,recompute,tflops_per_gpu,counted\n"
	const shape = ",x,96,12288,96,49152,gelu,51200,2048,A100-SXM-80GB,96,8,12,1,96,full,100,"
	list, err := ReadPublished(strings.NewReader(head + "a" + shape + "hardware\nb" + shape + "model\nc" + shape +
		"model-causal\n"))
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	const tokens, h, l, s, v = 96 * 2048, 12288.0, 96.0, 2048.0, 51200.0
	eq3 := 96 * tokens * l * h * h * (1 + s/(6*h) + v/(16*l*h)) / (96 * 100e12)
	if got := list[0].Published; math.Abs(got/eq3-1) > 1e-9 {
		t.Errorf("counted by hardware: %.3f s, want %.3f", got, eq3)
	}
	model := 72 * tokens * l * h * h * (1 + s/(6*h) + v/(12*l*h)) / (96 * 100e12)
	if got := list[1].Published; math.Abs(got/model-1) > 0.001 {
		t.Errorf("counted by the model: %.3f s, want %.3f", got, model)
	}
	half := model - 6*tokens*l*h*s/(96*100e12)
	if got := list[2].Published; math.Abs(got/half-1) > 0.001 {
		t.Errorf("counted by the model, causal: %.3f s, want %.3f", got, half)
	}
}

// Rows that no run can have are refused by their names; figures out of range do not crash.
func TestRowsThatNoRunCanHaveAreRefused(t *testing.T) {
	const head = "id,model,layers,hidden,heads,seq_len,accelerator,n_gpu,tp,pp,dp,micro_batch,global_batch_seqs," +
		"ffn,step_time_s\n"
	for row, want := range map[string]string{
		"a,,4,64,1,64,A100-SXM-80GB,1e300,1,1,,1,64,,3":     "dp=1073741825",
		"a,GPT,4,1,2,64,A100-SXM-80GB,8,1,1,,1,64,,3":       "2 heads have no dimension",
		"a,GPT,4,64,1,64,A100-SXM-80GB,8,1,8,,1,64,,3":      "pp=8 is more than the 4 layers",
		"a,GPT,4,64,1,64,A100-SXM-80GB,8,1,1,8,128,64,,3":   "no multiple of dp=8 × micro=128",
		"a,GPT,4,64,1,64,A100-SXM-80GB,8,1,1,4e9,1,64,,3":   "dp=1073741825",
		"a,,4,64,1,64,A100-SXM-80GB,8,4194304,4e6,,1,64,,3": "4194304",
		"a,GPT,4,64,1,64,A100-SXM-80GB,8,1,1,,1,64,1e300,3": "ffn = 1073741825",
		"a,GPT,4,64,1,64,A100-SXM-80GB,0,1,1,,1,64,,3":      "no row has a shape and a figure",
	} {
		list, err := ReadPublished(strings.NewReader(head + row))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", row, list, err, want)
		}
	}
}
