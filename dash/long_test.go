package dash

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/internal/torture"
	"anneal/run"
	"anneal/train"
)

// What a person may have to wait for, and what a server may hold, however long the run. Updates are to take 50 ms: 22
// to 40 on a Zen 5. A core half as fast, beside other tests, may take twice that.
const (
	paintWithin  = time.Second
	updateWithin = 2 * 50 * time.Millisecond
	serverBytes  = 200 << 20
)

const longLayers = 12

// longEvent is a step of a run of twelve layers, with what the defaults of a config measure.
func longEvent(step int) train.Event {
	wave := math.Sin(float64(step) / 7)
	figures := func(size float64, n int) []train.Number {
		list := make([]train.Number, n)
		for i := range list {
			list[i] = train.Number(size * (1 + float64(i)/7 + wave/9))
		}
		return list
	}
	byGroup := func(size float64) map[string]train.Number {
		x := figures(size, 4)
		return map[string]train.Number{"embedding": x[0], "matrix": x[1], "norm": x[2], "scalar": x[3]}
	}
	e := train.NewEvent()
	e.Step, e.Tokens, e.Loss = step, int64(step)*16384, 2+8*math.Exp(-float64(step)/3e4)+0.05*wave
	e.LR, e.GradNorm = 6e-3*(1-float64(step)/2e6), 0.5+0.1*wave
	e.ClipRate, e.ClipRateRecent = 0.07+0.01/float64(step), 0.07+0.05*wave
	e.TokensPerSecond, e.FractionOfPeak, e.RSSBytes = 27e3+900*wave, 0.23+0.01*wave, 261169152
	e.StepSeconds, e.FLOPs = 0.6+0.02*wave, 3.58e12
	if step%10 == 0 {
		e.GradNorms = train.LayerFigures{Layers: figures(0.1, longLayers), Groups: byGroup(0.2)}
		e.UpdateRatios = train.LayerFigures{Layers: figures(1e-3, longLayers), Groups: byGroup(2e-3)}
		e.PhaseSeconds = map[string]train.Number{}
		for i, seconds := range figures(0.1, int(train.Phases)) {
			e.PhaseSeconds[train.Phase(i).String()] = seconds
		}
	}
	if step%200 == 0 {
		e.ValLoss, e.ValBitsPerByte = e.Loss+0.1, e.Loss/2
		e.ActivationRMS = figures(4, longLayers+1)
	}
	return e
}

// longLines are the lines of some steps.
func longLines(from, to int) []byte {
	var out []byte
	for step := from; step <= to; step++ {
		text, err := longEvent(step).MarshalJSON()
		if err != nil {
			panic(err)
		}
		out = append(append(out, text...), '\n')
	}
	return out
}

// writeLong writes the metrics of so many steps, by several goroutines.
func writeLong(t *testing.T, path string, steps int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const each, at = 10_000, 4
	for from := 1; from <= steps; from += at * each {
		var parts [at][]byte
		var group sync.WaitGroup
		for i := range parts {
			group.Go(func() { parts[i] = longLines(from+i*each, min(from+(i+1)*each-1, steps)) })
		}
		group.Wait()
		for _, p := range parts {
			if _, err := file.Write(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMain is a server of the run that an environment variable names, in a process whose memory can be measured.
func TestMain(m *testing.M) {
	dir := os.Getenv("ANNEAL_TEST_SERVE")
	if dir == "" {
		os.Exit(m.Run())
	}
	w, err := New([]string{dir})
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			fmt.Println(l.Addr())
			err = (&Server{Watch: w}).Serve(context.Background(), l)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serveAlone serves a run from a process of its own until the test ends. held returns the most bytes that it has had in
// memory; 0 where the system does not say.
func serveAlone(t *testing.T, dir string) (address string, held func() int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_SERVE="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(line) + "/", func() int {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		_, most, _ := strings.Cut(string(text), "VmHWM:")
		kib, _, _ := strings.Cut(strings.TrimSpace(most), " ")
		n, _ := strconv.Atoi(kib)
		return n << 10
	}
}

// A run of a million steps is shown in a second, while it is read and afterwards; what it appends is shown within
// updateWithin; and the server takes less than 200 MiB.
func TestAMillionSteps(t *testing.T) {
	torture.Long(t)
	testLongRun(t, 1_000_000, true)
}

// The same of a shorter run, on processors that other tests may want, too: what counts is the processor time of an
// update.
func TestAHundredThousandSteps(t *testing.T) { testLongRun(t, 100_000, false) }

// testLongRun measures the page and the server of a run of so many steps, and takes the fastest of several tries.
func testLongRun(t *testing.T, steps int, alone bool) {
	b := openBrowser(t)
	dir := newRun(t, "long", "", fmt.Sprint("train.steps=", 2*steps))
	writeLong(t, run.MetricsFile(dir), steps)
	address, held := serveAlone(t, dir)
	b.look(1280, 900, "light")
	milliseconds := func(expression string) time.Duration {
		return time.Duration(b.eval(expression).(float64) * float64(time.Millisecond))
	}
	paint := func(what string) {
		var took []time.Duration
		for len(took) == 0 || len(took) < 5 && slices.Min(took) > paintWithin {
			b.call("Page.navigate", map[string]any{"url": address})
			b.until(`typeof data === "object" && data.drawn > 0 && charts.length > 5`)
			took = append(took, milliseconds(`data.drawn`))
		}
		t.Logf("%s: drawn %v after the page was asked for", what, took)
		if slices.Min(took) > paintWithin {
			t.Errorf("%s: drawn after %v, at most %v is wanted", what, took, paintWithin)
		}
	}
	began := time.Now()
	paint("while it is read")
	b.until(fmt.Sprintf(`data.view.runs[0].step === %d && data.view.runs[0].read === 1`, steps))
	t.Logf("%d steps are read after %v", steps, time.Since(began))
	paint("when it is read")

	file, err := os.OpenFile(run.MetricsFile(dir), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var took []time.Duration
	const updates = 7
	before := b.processor()
	for i := range updates {
		to := steps + 10*(i+1)
		file.Write(longLines(to-9, to))
		b.until(fmt.Sprintf(`data.curves[0].x.step.at(-1) === %d && data.cost > 0`, to))
		took = append(took, milliseconds(`data.cost`))
	}
	each := (b.processor() - before) / updates
	t.Logf("updates on the screen after %v; %v of a processor each", took, each)
	if each > updateWithin || alone && slices.Min(took) > updateWithin {
		t.Errorf("updates on the screen after %v, %v of a processor each; at most %v is wanted",
			took, each, updateWithin)
	}
	b.eval(fmt.Sprintf(`setZoom([%d, %d])`, steps/2, steps/2+200))
	b.until(`data.parts[0] && data.parts[0].width === 1 && charts[0].drawn[0].x === data.parts[0].x.step`)
	b.quiet()
	t.Logf("the server held %d MiB", held()>>20)
	if held() > serverBytes {
		t.Errorf("the server held %d bytes, at most %d are wanted", held(), serverBytes)
	}
}
