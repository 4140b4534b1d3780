package lab

import (
	"fmt"
	"sync"
	"time"
)

// A pace tracks the progress of a search of several runs, and estimates the remaining time from the mean time of those
// that have ended. Runs that an earlier process finished do not count. Several goroutines may use it.
type pace struct {
	mu           sync.Mutex
	all          int // runs that this process trains
	begun, ended int
	start        time.Time
	now          func() time.Time
}

// newPace returns the pace of a search that trains so many runs.
func newPace(all int) *pace { return &pace{all: all, now: time.Now} }

// more adds runs that a search makes because of its results.
func (p *pace) more(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all += n
}

// expect sets how many runs are still to begin.
func (p *pace) expect(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = p.begun + n
}

// begin returns the message for a run that begins.
func (p *pace) begin(what string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun++; p.begun == 1 {
		p.start = p.now()
	}
	text := fmt.Sprintf("run %d of %d: %s", p.begun, p.all, what)
	if p.ended > 0 {
		left := p.now().Sub(p.start) * time.Duration(p.all-p.ended) / time.Duration(p.ended)
		text += ", ETA " + left.Round(time.Second).String()
	}
	return text
}

// end records that a run has ended.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
}
