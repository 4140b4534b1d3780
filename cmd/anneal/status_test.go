package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"anneal/internal/units"
	"anneal/train"
)

// A pipe gets a whole line every ten seconds; a terminal one line, rewritten, cut to its width.
func TestStatusRewritesOnTerminalsOnly(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"pipe", 0, "line 10\nline 20\nkept\n"},
		{"terminal", 8, "\rline 5\x1b[K\rline 10\x1b[K\rline 15\x1b[K\rline 20\x1b[K\rline 25\x1b[K\r\x1b[Kkept\n"},
	} {
		var b strings.Builder
		clockAt := time.Unix(0, 0)
		s := newStatus(&b)
		s.now, s.last = func() time.Time { return clockAt }, clockAt
		s.terminal = func() int { return c.width }
		for sec := 5; sec <= 25; sec += 5 {
			clockAt = time.Unix(int64(sec), 0)
			s.update(func(int) string { return "line " + units.Commas(sec) })
		}
		s.keep("kept")
		if b.String() != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, b.String(), c.want)
		}
	}
}

func TestStatusCutsToTheWidth(t *testing.T) {
	var b strings.Builder
	s := newStatus(&b)
	s.last = time.Time{}
	s.terminal = func() int { return 20 }
	s.update(func(int) string { return strings.Repeat("é", 50) })
	if n := strings.Count(b.String(), "é"); n != 19 {
		t.Errorf("%d characters on a terminal of 20 columns, want 19", n)
	}
}

func TestBytesProgressTellsRateAndTimeLeft(t *testing.T) {
	var b strings.Builder
	clockAt := time.Unix(0, 0)
	s := newStatus(&b)
	s.now, s.last = func() time.Time { return clockAt }, clockAt
	progress := s.bytesProgress("reading", 400e6)
	clockAt = time.Unix(10, 0)
	progress(100e6)
	if want := "reading  100.0 MB of 400.0 MB  25%  10.0 MB/s  ETA 30s\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for got, want := range map[string]string{
		units.Commas(65536): "65,536", units.Commas(-1000): "-1,000", units.Commas(7): "7", units.Commas(999): "999",
		clock(123 * time.Second): "2m03s", clock(59 * time.Second): "59s", clock(3660 * time.Second): "1h01m",
		clock(47 * time.Hour): "47h00m", clock(100 * time.Hour): "4d04h",
		memorySize(3 << 30): "3,072 MiB",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A narrow terminal loses the rate and the gradient before it loses the time left.
func TestStepLineFitsNarrowTerminals(t *testing.T) {
	p := train.NewEvent()
	p.Step, p.Steps, p.Loss, p.LR, p.GradNorm, p.ETA = 840, 2400, 1.9474, 9.1e-4, 0.62, 123*time.Second
	p.TokensPerSecond, p.FractionOfPeak, p.ValBitsPerByte = 7940, 0.71, 1.31
	for width, want := range map[int]string{
		0: "step  840/2400   35%  loss 1.947  val 1.310 bits/byte  lr 9.1e-04  |g| 0.62  7,940 tok/s  71% of " +
			"peak  ETA 2m03s",
		80: "step  840/2400   35%  loss 1.947  val 1.310 bits/byte  7,940 tok/s  ETA 2m03s",
		40: "step  840/2400   35%  loss 1.947  ETA 2m03s",
	} {
		if got := stepLine(p, width); got != want {
			t.Errorf("%d columns:\n got %q\nwant %q", width, got, want)
		}
	}
	p.ValAccuracy, p.TrainAccuracy = 0.5, 0.75
	if got := stepLine(p, 0); !strings.Contains(got, "right 50.0% (training 75.0%)") {
		t.Errorf("answers that were counted: %q", got)
	}
	p.TokensPerSecond = math.NaN()
	if got := stepLine(p, 0); strings.Contains(got, "tok/s") {
		t.Errorf("a rate that is not known: %q", got)
	}
}
