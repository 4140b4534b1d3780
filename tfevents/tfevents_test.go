package tfevents_test

import (
	"bytes"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	_ "anneal/internal/torture"
	"anneal/tfevents"
)

var update = flag.Bool("update", false, "write the file that testdata/read_events.py reads")

// file is a run of five steps that went back to step 2 and on again.
func file() []byte {
	wall := time.Unix(1_700_000_000, 500_000_000)
	b := bytes.NewBuffer(tfevents.Version(wall))
	step := func(step int64, loss float64) {
		b.Write(tfevents.Summary(wall.Add(time.Duration(step)*time.Second), step,
			tfevents.Scalar("train/loss", loss),
			tfevents.Histogram("train/grad_norm_layers", []float64{0, 1, 1, 3, math.NaN()})))
	}
	b.Write(tfevents.Start(wall, 1))
	b.Write(tfevents.Summary(wall, 0, tfevents.Text("config", "seed: 1 — ünïcode")))
	for s := range int64(5) {
		step(s+1, float64(5-s))
	}
	b.Write(tfevents.Start(wall, 3))
	step(3, 2.5)
	step(4, math.NaN())
	return b.Bytes()
}

// The bytes are those that tensorboard's own reader has read: testdata/read_events.py checks them with
// EventAccumulator and says so in testdata/read.txt.
func TestTensorBoardReadsTheFile(t *testing.T) {
	const golden = "testdata/events.out.tfevents.golden"
	got := file()
	if *update {
		if err := os.WriteFile(golden, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes that differ from the %d that tensorboard has read\n"+
			"  run with -update, then testdata/read_events.py", len(got), len(want))
	}
}

func TestNamesOfFilesAreFound(t *testing.T) {
	now := time.Unix(1_700_000_000, 7)
	if n := tfevents.FileName(now, nil); !strings.HasPrefix(n, "events.out.tfevents.1700000000.") {
		t.Errorf("the name is %q", n)
	}
}

// TensorBoard reads a new file after the others, even if the clock was set back or they were made in the same second.
func TestNewFilesAreTheLast(t *testing.T) {
	files := []string{"notes.txt", "events.out.tfevents.9999999999.other"}
	last := ""
	for _, now := range []time.Time{
		time.Unix(1_700_000_000, 20), time.Unix(1_700_000_000, 3), time.Unix(1_600_000_000, 0),
		time.Unix(1_800_000_000, 0),
	} {
		name := tfevents.FileName(now, files)
		if name <= last {
			t.Errorf("at %v, %q is not after %q", now, name, last)
		}
		last, files = name, append(files, name)
	}
	if !strings.HasPrefix(last, "events.out.tfevents.1800000000.") {
		t.Errorf("the last is %q", last)
	}
}

// Numbers at the limits of float64 make neither NaN limits nor an index out of range.
func TestHistogramsOfExtremeNumbers(t *testing.T) {
	for _, list := range [][]float64{
		nil, {math.NaN()}, {1}, {2, 2}, {math.MaxFloat64, -math.MaxFloat64}, {0, math.SmallestNonzeroFloat64},
		{1, math.Nextafter(1, 2)},
	} {
		if v := tfevents.Histogram("h", list); len(v) < 5 {
			t.Errorf("%v: %d bytes", list, len(v))
		}
	}
}
