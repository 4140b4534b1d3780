package lab

import (
	"testing"
	"time"
)

// Of five runs two took ten seconds each: three are left for 30 seconds, and four once one is added. If only one more
// is needed after the fourth, there are five.
func TestAPaceSaysHowLongTheOtherRunsTake(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPace(5)
	p.now = func() time.Time { return now }
	if got := p.begin("a"); got != "run 1 of 5: a" {
		t.Errorf("%q before any run has ended", got)
	}
	now = now.Add(10 * time.Second)
	p.end()
	p.begin("b")
	now = now.Add(10 * time.Second)
	p.end()
	if got, want := p.begin("c"), "run 3 of 5: c, ETA 30s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.more(1)
	if got, want := p.begin("d"), "run 4 of 6: d, ETA 40s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.expect(1)
	if got, want := p.begin("e"), "run 5 of 5: e, ETA 30s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
