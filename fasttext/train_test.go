package fasttext

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"anneal/internal/machine"

	"pgregory.net/rapid"
)

var update = flag.String("update", "", "write our models to testdata, and lines to learn to this directory, for golden.py")

func train(t testing.TB, lines []byte, change func(o *TrainOptions)) *Model {
	t.Helper()
	o := DefaultTrainOptions()
	change(&o)
	m, err := Train(context.Background(), bytes.NewReader(lines), int64(len(lines)), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func quantize(t testing.TB, m *Model, o QuantizeOptions) *Model {
	t.Helper()
	q, err := m.Quantize(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func encode(t testing.TB, m *Model) []byte {
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The models in ours-*.bin, which the original has loaded and used for prediction.
var ourModels = map[string]func(o *TrainOptions){
	"ours-softmax.bin": func(o *TrainOptions) { o.WordNgrams, o.Bucket = 2, 60 },
	"ours-hs.bin":      func(o *TrainOptions) { o.Loss, o.MinN, o.MaxN, o.Bucket = HierarchicalSoftmax, 2, 3, 60 },
	"ours-ova.bin":     func(o *TrainOptions) { o.Loss, o.MinCount = OneVsAll, 3 },
	"ours-cut.ftz":     func(o *TrainOptions) { o.MinN, o.MaxN, o.WordNgrams, o.Bucket = 2, 3, 2, 400 },
	"ours-ns.bin":      func(o *TrainOptions) { o.Loss, o.MinN, o.MaxN, o.WordNgrams, o.Bucket = NegativeSampling, 3, 3, 3, 60 },
}

// The bytes of a model depend on the lines and the options, not on the number of threads.
func TestTrainingIsTheSameForAnyNumberOfThreads(t *testing.T) {
	lines, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	for file, change := range ourModels {
		var first []byte
		for _, threads := range []int{1, 2, 7} {
			m := train(t, lines, func(o *TrainOptions) {
				change(o)
				o.Dim, o.Epoch, o.LR, o.Threads = 5, 8, 0.5, threads
			})
			if strings.HasSuffix(file, ".ftz") {
				m = quantize(t, m, QuantizeOptions{Cutoff: 290, Norms: true, Width: 2, Threads: threads})
			}
			b := encode(t, m)
			if first == nil {
				first = b
			}
			if !bytes.Equal(b, first) {
				t.Errorf("%s: %d threads make another model than 1", file, threads)
			}
		}
		path := filepath.Join("testdata", file)
		if *update != "" {
			if err := os.WriteFile(path, first, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if then, err := os.ReadFile(path); err != nil || runtime.GOARCH == "amd64" && !bytes.Equal(then, first) { // exp may round differently on other architectures
			t.Errorf("%s is another model now than the one the original has used (%v): run testdata/golden.py again", file, err)
		}
	}
	other := train(t, lines, func(o *TrainOptions) { o.Dim, o.Seed = 5, 1 })
	if bytes.Equal(encode(t, other), encode(t, train(t, lines, func(o *TrainOptions) { o.Dim = 5 }))) {
		t.Error("the seed makes no difference")
	}
}

// The original loads the files of our trainer and makes the same predictions.
func TestOriginalPredictsTheSameAfterOurTraining(t *testing.T) { compareWithOriginal(t, "ours.json") }

// generate writes lines with ten labels that share most of their words.
func generate(lines int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	words := func(n int) []string {
		w := make([]string, n)
		for i := range w {
			for range 2 + rng.IntN(6) {
				w[i] += string("etaoinshrdlu"[rng.IntN(12)])
			}
		}
		return w
	}
	shared := words(800)
	own := make([][]string, 10)
	for i := range own {
		own[i] = words(80)
	}
	rng = rand.New(rand.NewPCG(2, seed))
	var b bytes.Buffer
	for range lines {
		label := rng.IntN(10)
		fmt.Fprintf(&b, "__label__l%d", label)
		for range 10 + rng.IntN(20) {
			from := shared
			switch x := rng.Float64(); {
			case x < 0.15:
				from = own[label]
			case x < 0.3:
				from = own[rng.IntN(10)]
			}
			b.WriteByte(' ')
			b.WriteString(from[rng.IntN(len(from))])
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// accuracy returns the share of lines whose best label is the right one.
func accuracy(m *Model, lines []byte) float64 {
	var e Evaluation
	p := m.NewPredictor()
	for line := range bytes.Lines(lines) {
		e.Add(LineLabels(line), p.Predict(line, 1, 0)[0].Label)
	}
	return e.Accuracy
}

// A quantised model is several times smaller and nearly as good, even with a third of its rows.
func TestQuantisedModelsAreNearlyAsGood(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds under the race detector")
	}
	lines, test := generate(2000, 1), generate(1000, 2)
	m := train(t, lines, func(o *TrainOptions) { o.LR, o.Epoch, o.Dim, o.WordNgrams, o.Bucket = 0.5, 15, 8, 2, 1000 })
	before, size := accuracy(m, test), len(encode(t, m))
	for name, c := range map[string]struct {
		o       QuantizeOptions
		smaller float64
	}{
		"all rows":     {QuantizeOptions{Width: 2}, 2.3},
		"wide codes":   {QuantizeOptions{Width: 3, Norms: true}, 2.3},
		"half of them": {QuantizeOptions{Width: 2, Norms: true, Cutoff: m.input.rows / 2}, 3},
	} {
		q := quantize(t, m, c.o)
		b := encode(t, q)
		q, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		after := accuracy(q, test)
		t.Logf("%s: accuracy %.3f becomes %.3f, %d bytes become %d", name, before, after, size, len(b))
		if after < before-0.02 || float64(size) < c.smaller*float64(len(b)) || !q.Quantised() {
			t.Errorf("%s: accuracy %.3f becomes %.3f, %d bytes become %d", name, before, after, size, len(b))
		}
	}
	for want, o := range map[string]QuantizeOptions{"too few": {Width: 2, Cutoff: 255}, "width 9": {Width: 9}, "cutoff of -1": {Width: 2, Cutoff: -1}} {
		if _, err := m.Quantize(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", o, err, want)
		}
	}
	q := quantize(t, m, QuantizeOptions{Width: 2})
	if _, err := q.Quantize(context.Background(), QuantizeOptions{Width: 2}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second time: %v", err)
	}
}

// On the same lines our models are as good as those that the original trains with 1 to 12 threads.
func TestTrainingIsAsGoodAsTheOriginals(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds under the race detector")
	}
	lines, test := generate(4000, 1), generate(2000, 2)
	if *update != "" {
		for name, b := range map[string][]byte{"train.txt": lines, "test.txt": test} {
			if err := os.WriteFile(filepath.Join(*update, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want struct {
		TrainSHA256 string `json:"train_sha256"`
		Accuracy    map[string][]float64
	}
	b, err := os.ReadFile("testdata/accuracy.json")
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(lines); hex.EncodeToString(sum[:]) != want.TrainSHA256 {
		t.Fatal("the original has learnt other lines: run testdata/golden.py again")
	}
	for loss := HierarchicalSoftmax; loss <= OneVsAll; loss++ {
		m := train(t, lines, func(o *TrainOptions) {
			o.Loss, o.LR, o.Epoch, o.Dim, o.WordNgrams, o.Bucket = loss, 0.5, 15, 16, 2, 20000
		})
		got := accuracy(m, test)
		theirs := want.Accuracy[loss.String()]
		t.Logf("%v: accuracy %.4f, the original's %v", loss, got, theirs)
		if least := theirs[0] - 0.01; got < least { // 2,000 lines: one standard error is 0.01
			t.Errorf("%v: accuracy %.4f, less than the original's %v", loss, got, theirs)
		}
	}
}

func TestTrainingRefusesWhatCannotBeLearnt(t *testing.T) {
	for _, c := range []struct {
		lines, want string
		change      func(o *TrainOptions)
	}{
		{"", "no line has a label", nil},
		{"a b c\n", "no line has a label", nil},
		{"__label__x a b\n", "needs two labels", nil},
		{"__label__x a b\n__label__y c\n", "no word occurs at least 9 times", func(o *TrainOptions) { o.MinCount = 9 }},
		{"__label__x a b\n__label__y c\n", "dim = 0", func(o *TrainOptions) { o.Dim = 0 }},
		{"__label__x a b\n__label__y c\n", "lr = 0", func(o *TrainOptions) { o.LR = 0 }},
		{"__label__x a b\n__label__y c\n", "minn = 3 is above maxn = 2", func(o *TrainOptions) { o.MinN, o.MaxN = 3, 2 }},
		{"__label__x a b\n__label__y c\n", "0 buckets", func(o *TrainOptions) { o.WordNgrams, o.Bucket = 2, 0 }},
	} {
		o := DefaultTrainOptions()
		if c.change != nil {
			c.change(&o)
		}
		_, err := Train(context.Background(), strings.NewReader(c.lines), int64(len(c.lines)), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(c.lines+err.Error(), "try") && o.Bucket > 0 {
			t.Errorf("%q: %v, want an error with %q and advice", c.lines, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	lines := generate(10, 1)
	if _, err := Train(ctx, bytes.NewReader(lines), int64(len(lines)), DefaultTrainOptions()); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// Lines that are too long, have no end or have no words do not disturb the others.
func TestOddLinesAreLearntFrom(t *testing.T) {
	long := "__label__x " + strings.Repeat("word ", 300_000) // 1.5 MB
	lines := long + "\n\n__label__y\n__label__y other </s> hidden\n__label__x word\n__label__y other __label__x both\n \n__label__y other"
	m := train(t, []byte(lines), func(o *TrainOptions) { o.Dim, o.LR, o.Epoch, o.MinN, o.MaxN, o.Bucket = 4, 1, 20, 3, 3, 50 })
	if got := m.NewPredictor().Predict([]byte("other"), 1, 0)[0].Label; got != "y" {
		t.Errorf("other is %s", got)
	}
	if m.dict.find([]byte("hidden"), hashToken([]byte("hidden"))) >= 0 {
		t.Error("what comes behind </s> is in the dictionary")
	}
}

// A text has the same scores as the line that AppendLine makes of it.
func TestLinesAreLearntAsTextsAreScored(t *testing.T) {
	lines, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := train(t, lines, func(o *TrainOptions) { o.Dim, o.Epoch, o.WordNgrams, o.MinN, o.MaxN, o.Bucket = 3, 2, 2, 2, 3, 50 })
	texts, asLines := m.NewPredictor(), m.NewPredictor()
	piece := rapid.SampledFrom(append(strings.Fields(string(lines))[:60], "\n", "\r\n", " ", "\t", "\x00", "</s>", "__label__", "__label__new", "x__label__a", "é", "\xff"))
	rapid.Check(t, func(r *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOf(piece).Draw(r, "text"), rapid.SampledFrom([]string{"", " "}).Draw(r, "between")))
		want := texts.Scores(text)
		line := AppendLine(nil, "a", text)
		if bytes.IndexByte(line, '\n') != len(line)-1 || LineLabels(line)[0] != "a" || len(LineLabels(line)) != 1 {
			r.Fatalf("%q becomes the line %q with labels %v", text, line, LineLabels(line))
		}
		for i, got := range asLines.Scores(line) {
			if got != want[i] {
				r.Fatalf("%q has the score %v, as a line %q %v", text, want[i], line, got)
			}
		}
	})
}

// FuzzTrain trains on arbitrary bytes: it must not panic, must use memory in proportion to the input, and must give
// the same model with two threads.
func FuzzTrain(f *testing.F) {
	f.Add([]byte("__label__a one two\n__label__b two three </s> four\n"), uint8(0))
	f.Add([]byte("__label__a __label__b\n\n__label__c \xff\x00é\n"), uint8(1))
	f.Fuzz(func(t *testing.T, lines []byte, kind uint8) {
		o := TrainOptions{Dim: 2, LR: 1, Epoch: 2, Loss: Loss(1 + kind%4), WordNgrams: 1 + int(kind>>2%3), MinN: 1, MaxN: int(kind >> 4 % 4), Bucket: 9, Neg: 2, Threads: 1}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Train(context.Background(), bytes.NewReader(lines), int64(len(lines)), o)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(4<<20+1000*len(lines)); got > most {
			t.Fatalf("%d bytes of lines: allocated %d, more than %d", len(lines), got, most)
		}
		if err != nil {
			return
		}
		o.Threads = 2
		again, err := Train(context.Background(), bytes.NewReader(lines), int64(len(lines)), o)
		if err != nil || !bytes.Equal(encode(t, m), encode(t, again)) {
			t.Fatalf("with two threads: another model (%v)", err)
		}
		b := encode(t, m)
		if _, err := Read(bytes.NewReader(b), int64(len(b))); err != nil {
			t.Fatalf("what was learnt cannot be read: %v", err)
		}
	})
}

// Vectors that do not fit are refused before they are allocated: those of n-grams before the lines are read, those of
// words after it.
func TestVectorsMustFit(t *testing.T) {
	o := DefaultTrainOptions()
	o.WordNgrams, o.Bucket, o.Dim = 2, 2_000_000_000, maxDim
	room := new(machine.RoomError)
	for _, available := range []int64{0, 1 << 30} {
		o.Available = available
		if err := o.Fits(); !errors.As(err, &room) || !strings.HasSuffix(err.Error(), "try a smaller --bucket") {
			t.Errorf("%d buckets in %d bytes: %v", o.Bucket, available, err)
		}
	}
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, "__label__%d word%d\n", i%2, i)
	}
	o.WordNgrams, o.Available = 1, trainMemory+50<<20
	if err := o.Fits(); err != nil {
		t.Errorf("without n-grams: %v", err)
	}
	_, err := Train(context.Background(), strings.NewReader(lines.String()), int64(lines.Len()), o)
	if !errors.As(err, &room) || !strings.HasSuffix(err.Error(), "try a smaller --dim") {
		t.Errorf("400 words of %d: %v", o.Dim, err)
	}
}
