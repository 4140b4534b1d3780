package lab

import (
	"fmt"
	"sync"
	"time"
)

// A pace says how far a search of several runs is, and how long the others take if each takes as long as those that it
// has trained. Several goroutines may use it.
type pace struct {
	mu           sync.Mutex
	all          int // runs, with those that an earlier process finished
	begun, ended int
	trained      int // of those that ended: runs that this process trained
	start        time.Time
	now          func() time.Time
}

// newPace returns the pace of a search of so many runs.
func newPace(all int) *pace { return &pace{all: all, now: time.Now} }

// more adds runs that a search makes because of what it found.
func (p *pace) more(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all += n
}

// begin returns the line of a run that begins.
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

// end says that a run has ended, and whether it was trained or already there.
func (p *pace) end(trained bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	if trained {
		p.trained++
	}
}
