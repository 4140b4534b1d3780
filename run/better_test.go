package run

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"anneal/train"
	"anneal/train/traintest"
)

// A run whose loss rises names the lowest evaluation and a checkpoint to take, and its journal says so, too. An
// evaluation on other text is not compared.
func TestARunThatGetsWorseNamesItsBestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	first := mustRun(t, Options{Config: with(t, traintest.Data(t), "train.steps=6", "schedule.warmup=1",
		"train.eval_every=2", "checkpoint.every=2", "checkpoint.keep=3"), Dir: dir})
	if first.Better != nil {
		t.Fatalf("a run that improves names an earlier evaluation: %v", first.Better)
	}
	edit(t, dir, "train.steps=8", "optimizer.lr=3", "train.clip=0")
	worse := mustResume(t, dir)
	b := worse.Better
	if b == nil || b.Step != 6 || b.Kept != 6 || b.BitsPerByte != first.ValBitsPerByte ||
		b.Above != worse.ValBitsPerByte/first.ValBitsPerByte-1 {
		t.Fatalf("the best is %+v; want step 6 with %v, where the end has %v", b, first.ValBitsPerByte,
			worse.ValBitsPerByte)
	}
	found := false
	for _, l := range Journal(dir, 10) {
		found = found || l.Event == "warning" && strings.HasSuffix(l.Text, "export take it with --step 6")
	}
	if !found {
		t.Error("the journal does not say so")
	}
	edit(t, dir, "train.steps=9", "train.eval_tokens=128")
	if other := mustResume(t, dir); other.Better != nil {
		t.Errorf("evaluations on other text were compared: %v", other.Better)
	}
}

func mustResume(t *testing.T, dir string) *Result {
	t.Helper()
	r, err := Resume(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The checkpoint to take is the best that is kept and was evaluated. A difference of 1 % is not worth a line.
func TestTheBestCheckpointThatIsKept(t *testing.T) {
	at := func(step int, bits float64) train.Event {
		e := train.NewEvent()
		e.Step, e.ValLoss, e.ValBitsPerByte = step, 2*bits, bits
		return e
	}
	list := []train.Event{at(10, 2.5), at(20, 2.3), at(30, 2.4), at(40, 2.98), at(50, 3)}
	for _, c := range []struct {
		kept []int
		want string
	}{
		{[]int{20, 30}, "2.3000 bits/byte, at step 20; the end is 30 % above it. generate, eval and export take it " +
			"with --step 20"},
		{[]int{10, 30, 40, 45, 50}, "2.3000 bits/byte, at step 20; the end is 30 % above it. The best checkpoint " +
			"that is kept has 2.4000: generate, eval and export take it with --step 30"},
		{[]int{40, 45, 50}, "2.3000 bits/byte, at step 20; the end is 30 % above it. No better checkpoint is kept: " +
			"train fewer steps, or on more text"},
	} {
		kept := map[int]bool{}
		for _, step := range c.kept {
			kept[step] = true
		}
		if b := better(list, kept); b == nil || b.String() != c.want {
			t.Errorf("with the checkpoints %v: %v, want %s", c.kept, b, c.want)
		}
	}
	if b := better(list[3:], map[int]bool{40: true}); b != nil {
		t.Errorf("a difference of less than 1 %% is told: %v", b)
	}
}
