package use

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"anneal/prepare/synth"
	"anneal/run"
	"anneal/tasks"
	"anneal/tensor"
	"anneal/train"
	"anneal/train/traintest"
)

// A sequence packed among others has the log-likelihood that the model gives it alone, token by token, with its cache
// of keys and values; also where patterns cannot be packed, and where the run was not trained on documents.
func TestSequencesAreScoredAsIfAlone(t *testing.T) {
	for _, overrides := range [][]string{
		{"data.document_mask=false"},
		{"model.attention=window:16,longformer:8:4"}, {"model.attention=linear:gated,full"},
		{"model.family=gpt2", "model.activation=gelu", "model.positions=learned"},
		{"model.positions=alibi", "model.attention_sinks=true", "model.attention=window:24,full"},
		{"model.kv_lora_rank=16"}, {"model.family=anneal", "model.zero_init=none", "model.bigram=64"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, run.Options{
			Config: with(t, traintest.Data(t), append(overrides, "train.steps=4", "model.context=64",
				"train.batch_tokens=256", "train.micro_batch=2", "precision=fp32")...), Dir: dir,
		})
		r, err := Open(dir, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		checkLikelihoods(t, r)
	}
}

func checkLikelihoods(t *testing.T, r *Trained) {
	random := rand.New(rand.NewPCG(1, 2))
	var list []tasks.Sequence
	for n := 2; n <= r.Context()+1; n += 9 {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = random.Int32N(int32(r.Config.Model.Vocab))
		}
		list = append(list, tasks.Sequence{IDs: ids, From: 1 + random.IntN(n-1)})
	}
	list = append(list, choices(random, r, 40, 5, 1, 4, 9)...)
	list = append(list, choices(random, r, 20, 3, 2, 30, 10, 1, 1)...) // not all in one row
	text, err := r.NewText()
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	last := len(list[3].IDs) - 1
	logits := text.g.Logits(list[3].IDs[:last])
	best := 0
	for v := range logits.Len() {
		if logits.Float64(v) > logits.Float64(best) {
			best = v
		}
	}
	list[3].IDs[last], list[3].From = int32(best), last // of which the model would have written all that is scored
	e, err := train.NewEvaluator(r.Config, r.Policy, r.dev, r.Model)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	read := int64(0)
	got, err := e.LogLikelihoods(context.Background(), list, func(n int64) { read = n })
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range list {
		want, greedy := 0.0, true
		for at := s.From; at < len(s.IDs); at++ {
			p, most := logProb(text.g.Logits(s.IDs[:at]), int(s.IDs[at]))
			want, greedy = want+p, greedy && most
		}
		if math.Abs(got[i].LogProb-want) > 1e-4*math.Sqrt(float64(len(s.IDs))) || got[i].Greedy != greedy {
			t.Errorf("%v: %d of %d tokens: %v, alone %v %v", r.Config.Model.Attention, len(s.IDs)-s.From, len(s.IDs),
				got[i], want, greedy)
		}
		read -= int64(len(s.IDs) - 1)
	}
	if read != 0 || !got[3].Greedy {
		t.Errorf("%d tokens are not counted; %v", read, got[3])
	}
}

// choices are continuations of so many tokens each after the same context.
func choices(random *rand.Rand, r *Trained, context int, tokens ...int) (list []tasks.Sequence) {
	question := make([]int32, context)
	for i := range question {
		question[i] = random.Int32N(int32(r.Config.Model.Vocab))
	}
	for i, n := range tokens {
		s := tasks.Sequence{IDs: slices.Clone(question), From: context}
		for range n {
			s.IDs = append(s.IDs, random.Int32N(int32(r.Config.Model.Vocab)))
		}
		if i > 0 {
			s.Shared = context - 1
		}
		list = append(list, s)
	}
	return list
}

// Choices of a question have the log-likelihoods of rows of their own, whether or not they share the question in a row.
func TestChoicesShareTheirQuestion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{
		Config: with(t, traintest.Data(t), "train.steps=4", "model.context=128", "train.batch_tokens=256",
			"train.micro_batch=2", "precision=fp32"), Dir: dir,
	})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(3, 4))
	var list []tasks.Sequence
	for range 12 {
		list = append(list, choices(random, r, 60+random.IntN(40), 4, 1, 7, 3)...)
	}
	apart := slices.Clone(list)
	for i := range apart {
		apart[i].Shared = 0
	}
	rows := func(l []tasks.Sequence) int { return len(tasks.Packing{Length: r.Context(), Share: true}.Rows(l)) }
	if one, all := rows(list), rows(apart); 3*one > all {
		t.Errorf("%d rows with shared questions, %d without", one, all)
	}
	e, err := train.NewEvaluator(r.Config, r.Policy, r.dev, r.Model)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	got, err := e.LogLikelihoods(context.Background(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := e.LogLikelihoods(context.Background(), apart, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if math.Abs(got[i].LogProb-want[i].LogProb) > 1e-5 || got[i].Greedy != want[i].Greedy {
			t.Errorf("sequence %d: %v, in a row of its own %v", i, got[i], want[i])
		}
	}
}

// logProb returns the log-probability of a token under logits, and whether it is the likeliest.
func logProb(logits *tensor.Tensor, id int) (p float64, most bool) {
	var list []float64
	for v := range logits.Len() {
		list = append(list, logits.Float64(v))
	}
	top, sum := slices.Max(list), 0.0
	for _, x := range list {
		sum += math.Exp(x - top)
	}
	return list[id] - top - math.Log(sum), list[id] == top
}

// The tasks of examples/tasks run, and their figures are those of their items.
func TestExamplesOfTasksAreAsked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{
		Config: with(t, traintest.Data(t), "train.steps=4", "model.context=256", "train.batch_tokens=512",
			"precision=fp32"),
		Dir: dir,
	})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	set, err := tasks.Load("../examples/tasks")
	if err != nil {
		t.Fatal(err)
	}
	exam, err := r.Prepare(set, 4)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	result, err := r.Ask(context.Background(), exam, tasks.Options{By: "kind", Sample: func(s tasks.Sample) error {
		sums[s.Task] += float64(s.Metrics["acc"])
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Tasks) != len(set.Tasks) || len(result.Groups) != 1 {
		t.Fatalf("%+v", result)
	}
	mean := 0.0
	for _, x := range result.Tasks {
		if x.Items != 4 || x.Of <= 4 {
			t.Errorf("%s: %d items of %d", x.Task, x.Items, x.Of)
		}
		if m := x.Metrics[0]; m.Name == "acc" && float64(m.Value) != sums[x.Task]/4 {
			t.Errorf("%s: %v, of items %v", x.Task, m.Value, sums[x.Task]/4)
		}
		if x.Task == "go_syntax" || x.Task == "go_package" {
			mean += float64(x.Metrics[0].Value) / 2
		}
		if x.Task == "go_source" && (len(x.Parts) != 1 || x.Parts[0].Metrics[0].Value != x.Metrics[0].Value) {
			t.Errorf("of one kind: %+v", x)
		}
	}
	if got := float64(result.Groups[0].Metrics[0].Value); math.Abs(got-mean) > 1e-12 {
		t.Errorf("the group has %v, its tasks %v", got, mean)
	}
}

// What a run makes of its tasks at its end is what the trained model makes of them.
func TestARunAsksItsTasksAsTheTrainedModelIsAsked(t *testing.T) {
	questions := t.TempDir()
	sums := synth.Text{Val: []string{"the sum of 1 and 2 is 3", "the sum of 4 and 4 is 8"}, PromptEnd: "is "}
	if n, err := sums.WriteTasks(questions); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{
		Config: with(t, traintest.Data(t), "train.steps=30", "precision=fp32", "eval.tasks="+questions), Dir: dir,
	})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	set, err := tasks.Load(questions)
	if err != nil {
		t.Fatal(err)
	}
	exam, err := r.Prepare(set, 0)
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Ask(context.Background(), exam, tasks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines := readMetrics(t, dir)
	asked, _ := lines[len(lines)-1]["tasks"].(map[string]any)["answers"].(map[string]any)
	for _, m := range result.Tasks[0].Metrics {
		if got, _ := asked[m.Name].(float64); math.Abs(got-float64(m.Value)) > 1e-4*float64(m.Value) {
			t.Errorf("%s: %v in the run, %v of the trained model", m.Name, asked[m.Name], m.Value)
		}
	}
	if len(result.Tasks[0].Metrics) != 2 {
		t.Errorf("%+v", result.Tasks[0])
	}
}
