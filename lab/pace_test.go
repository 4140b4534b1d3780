package lab

import (
	"testing"
	"time"
)

// Of six runs one was there, and two took ten seconds each: three are left for 30 seconds, and four once one is added.
func TestAPaceSaysHowLongTheOtherRunsTake(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPace(6)
	p.now = func() time.Time { return now }
	if got := p.begin("a"); got != "run 1 of 6: a" {
		t.Errorf("%q before any run has ended", got)
	}
	p.end(false)
	for range 2 {
		p.begin("b")
		now = now.Add(10 * time.Second)
		p.end(true)
	}
	if got, want := p.begin("c"), "run 4 of 6: c, ETA 30s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.more(1)
	if got, want := p.begin("d"), "run 5 of 7: d, ETA 40s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
