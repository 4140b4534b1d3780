package lab

import (
	"fmt"
	"sync"
	"time"
)

// A pace tracks the progress of a search of several runs, and estimates the remaining time from the mean time of
// trained runs. Several goroutines may use it.
type pace struct {
	mu           sync.Mutex
	all          int // runs, including those that an earlier process finished
	begun, ended int
	trained      int // finished runs that this process trained
	start        time.Time
	now          func() time.Time
}

// newPace returns the pace of a search with the given number of runs.
func newPace(all int) *pace { return &pace{all: all, now: time.Now} }

// more adds runs that a search makes because of its results.
func (p *pace) more(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all += n
}

// begin returns the message for a run that begins.
func (p *pace) begin(what string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun++; p.begun == 1 {
		p.start = p.now()
	}
	text := fmt.Sprintf("run %d of %d: %s", p.begun, p.all, what)
	if p.trained > 0 {
		left := p.now().Sub(p.start) * time.Duration(p.all-p.ended) / time.Duration(p.trained)
		text += ", ETA " + left.Round(time.Second).String()
	}
	return text
}

// end records that a run has ended, and whether it was trained or already finished before.
func (p *pace) end(trained bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	if trained {
		p.trained++
	}
}
