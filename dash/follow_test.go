package dash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// line is a step as training writes it.
func line(step int) string {
	loss := 2 + 8*math.Exp(-float64(step)/300) + 0.05*math.Sin(float64(step))
	more := ""
	if step%10 == 0 {
		more = fmt.Sprintf(`,"grad_norms":{"layers":[%.4g,%.4g],"groups":{"mlp":0.5}},"phase_seconds":{"forward":0.1}`,
			loss/10, loss/20)
	}
	if step%100 == 0 {
		more += fmt.Sprintf(`,"val_loss":%.5g,"val_bits_per_byte":%.5g`, loss+0.1, loss/2)
	}
	return fmt.Sprintf(`{"step":%d,"tokens":%d,"loss":%.6g,"lr":0.001,"grad_norm":0.5,"clip_rate":0.01,`+
		`"tokens_per_second":40000,"fraction_of_peak":0.6,"rss_bytes":400000000,"step_seconds":0.1,"flops":1e9%s}`+"\n",
		step, 4096*step, loss, more)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func lines(from, to int) string {
	var b strings.Builder
	for step := from; step <= to; step++ {
		b.WriteString(line(step))
	}
	return b.String()
}

func poll(t *testing.T, f *follower) {
	t.Helper()
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
}

// The last evaluation is told as it was, also when a bucket of the curves holds the steps after it.
func TestTheLastEvaluationIsExact(t *testing.T) {
	dir := newRun(t, "a", lines(2, 3001))
	v := newWatch(t, dir).View(now).Runs[0]
	if v.ValStep != 3000 || v.ValLoss != 2.1113 || v.ValBitsPerByte != 1.0057 {
		t.Errorf("at step %d: %v, %v bits per byte, want\n%s", v.ValStep, v.ValLoss, v.ValBitsPerByte, line(3000))
	}
}

// However a file grows, in whatever pieces, what is known is what reading it at once gives.
func TestAFileThatGrowsIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := newFollower(path)
	poll(t, f) // nothing is there yet
	text := lines(1, 500)
	for end := 0; end < len(text); end = min(end+997, len(text)) {
		write(t, path, text[:end])
		poll(t, f)
	}
	write(t, path, text)
	poll(t, f)
	once := newFollower(path)
	poll(t, once)
	if f.generation != 1 || f.lines != 500 || f.bad != 0 {
		t.Errorf("generation %d, %d lines, %d broken", f.generation, f.lines, f.bad)
	}
	a, b := f.curves(known{}), once.curves(known{})
	if !bytes.Equal(a, b) || !json.Valid(a) {
		t.Errorf("in pieces:\n%s\nat once:\n%s", a, b)
	}
	if f.end.tokens != 500*4096 || math.Abs(f.end.seconds-50) > 1e-9 || f.end.flops != 500e9 {
		t.Errorf("%+v", f.end)
	}
}

// A resume cuts lines off and a rewind replaces the file, and either may be longer again before the next look.
func TestAFileThatWasReplacedIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := newFollower(path)
	for i, text := range []string{
		lines(1, 300), lines(1, 200),
		lines(1, 100) + strings.ReplaceAll(lines(101, 250), "}\n", `,"rewound":true}`+"\n") + lines(101, 400),
	} {
		write(t, path, text)
		poll(t, f)
		if f.generation != i+1 {
			t.Errorf("%d: generation %d", i, f.generation)
		}
	}
	if f.rewound != 150 || f.end.step != 400 || f.end.flops != 400e9 {
		t.Errorf("%d rewound, end %+v", f.rewound, f.end)
	}
}

// A file that is gone has nothing: another run under its name begins at its own first step.
func TestAFileThatIsGoneIsForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := newFollower(path)
	write(t, path, lines(1, 300))
	poll(t, f)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	poll(t, f)
	var v RunView
	f.view(&v, math.Inf(1), time.Now())
	if v.Step != 0 || f.lines != 0 || v.Read != 1 {
		t.Errorf("step %d of %d lines, %v of them read", v.Step, f.lines, v.Read)
	}
	write(t, path, lines(1, 5))
	poll(t, f)
	if f.end.step != 5 || f.lines != 5 {
		t.Errorf("step %d of %d lines", f.end.step, f.lines)
	}
}

// Broken lines are counted, and cost nothing but themselves.
func TestBrokenLinesAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	long := strings.Repeat("x", 2*pieceBytes+5) + "\n"
	write(t, path, line(1)+"\n{\"step\":2\n"+line(3)+`{"step":0}`+"\n"+"\x00\x00\n"+`{"step":1e300}`+"\n"+long+line(4)+
		`{"step":99999999999}`+"\n"+line(5)+`{"step":6`)
	f := newFollower(path)
	poll(t, f)
	if f.lines != 4 || f.bad < 7 || f.end.step != 5 {
		t.Errorf("%d lines, %d broken, step %d", f.lines, f.bad, f.end.step)
	}
}

// A reader that has some buckets gets the others, and that way has them all.
func TestCurvesComeInParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	f := newFollower(path)
	write(t, path, lines(1, 150))
	poll(t, f)
	var had, now struct {
		Generation, Width, From int
		X                       map[string][]float64
		Series                  map[string]struct{ Mean []any }
	}
	json.Unmarshal(f.curves(known{}), &had)
	write(t, path, lines(1, 170))
	poll(t, f)
	json.Unmarshal(f.curves(known{had.Generation, had.Width, len(had.X["step"]) - 1}), &now)
	if now.From != 149 || len(now.X["step"]) != 21 || len(now.Series["loss"].Mean) != 21 || now.X["step"][0] != 150 {
		t.Errorf("%+v", now)
	}
	for _, has := range []known{{had.Generation, 2, 149}, {7, 1, 149}, {1, 1, 1e9}, {1, 1, -5}} {
		json.Unmarshal(f.curves(has), &now)
		if now.From != 0 || len(now.X["step"]) != 170 {
			t.Errorf("%v: from %d, %d buckets", has, now.From, len(now.X["step"]))
		}
	}
}

// A closer look at a long run shows single steps, with the same places on the axes.
func TestAPartIsFiner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	write(t, path, lines(1, 20_000))
	f := newFollower(path)
	poll(t, f)
	text, err := f.part(t.Context(), 10_000, 10_200)
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Width int
		X     map[string][]float64
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	for i, step := range p.X["step"] {
		if p.X["tokens"][i] != 4096*step || math.Abs(p.X["seconds"][i]-step/10) > 1e-3*step {
			t.Fatalf("step %v: %v tokens, %v s", step, p.X["tokens"][i], p.X["seconds"][i])
		}
	}
	if p.Width != 1 || p.X["step"][0] > 10_000 || p.X["step"][len(p.X["step"])-1] < 10_200 || f.table.width == 1 {
		t.Errorf("width %d from step %v", p.Width, p.X["step"][0])
	}
}

// However long a file, what is held of it is small, and so is what a reader gets that has all but the newest.
func TestALongFileTakesLittle(t *testing.T) {
	const steps = 50_000
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	for step := 1; step <= steps; step++ {
		out.WriteString(line(step))
	}
	out.Flush()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f := newFollower(path)
	began := time.Now()
	poll(t, f)
	took := time.Since(began)
	began = time.Now()
	all := f.curves(known{})
	first := time.Since(began)
	file.WriteString(line(steps + 1))
	began = time.Now()
	poll(t, f)
	more := f.curves(known{f.generation, f.table.width, len(f.table.x) - 1})
	update := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	runtime.KeepAlive(f)
	t.Logf("%d steps: read in %v, all curves %d bytes in %v, an update %d bytes in %v, %d MiB held",
		steps, took, len(all), first, len(more), update, held>>20)
	if f.lines != steps+1 || held > 50<<20 || len(all) > 4<<20 || len(more) > 10_000 {
		t.Errorf("%d lines, %d bytes held, curves of %d and %d bytes", f.lines, held, len(all), len(more))
	}
}

// FuzzFollow reads any file: it never fails, and what it holds stays small.
func FuzzFollow(f *testing.F) {
	f.Add([]byte(lines(1, 30)), []byte(lines(31, 40)))
	f.Add([]byte("{}\n{\"step\":3}\nx"), []byte(`{"step":4,"a":{"b":[1,null]}}`+"\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		path := filepath.Join(t.TempDir(), "metrics.jsonl")
		follower := newFollower(path)
		for _, text := range [][]byte{first, append(bytes.Clone(first), second...), second} {
			write(t, path, string(text))
			poll(t, follower)
			if c := follower.curves(known{}); !json.Valid(c) {
				t.Fatalf("no JSON: %s", c)
			}
			if len(follower.table.x) > buckets {
				t.Fatalf("%d buckets", len(follower.table.x))
			}
		}
	})
}
