//go:build cuda && linux

package cuda

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"anneal/device/cuda/driver"
)

// A profile measures the time of each kernel on the card, between two events. Events cost a few microseconds each, so
// a step takes longer with a profile. ANNEAL_CUDA_PROFILE=1 enables it; it is printed when the device is closed.
type profile struct {
	spare []driver.Event
	spans []span // not yet read
	times map[string]*kernelTime
}

type span struct {
	name     string
	from, to driver.Event
}

type kernelTime struct {
	calls   int
	seconds float64
}

// maxSpans is the largest number of unread spans.
const maxSpans = 4096

// timed calls f, which launches one kernel.
func (d *Device) timed(name string, f func() error) error {
	p := d.profile
	if p == nil {
		return f()
	}
	if len(p.spans) == maxSpans {
		if err := d.driver.Synchronize(d.stream); err != nil {
			return err
		}
		if err := p.read(d.driver); err != nil {
			return err
		}
	}
	from, err := p.mark(d)
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	to, err := p.mark(d)
	p.spans = append(p.spans, span{name, from, to})
	return err
}

// mark records an event in the stream.
func (p *profile) mark(d *Device) (e driver.Event, err error) {
	if n := len(p.spare); n > 0 {
		e, p.spare = p.spare[n-1], p.spare[:n-1]
	} else if e, err = d.driver.NewEvent(); err != nil {
		return 0, err
	}
	return e, d.driver.Record(e, d.stream)
}

// read adds the times of completed kernels.
func (p *profile) read(drv *driver.Driver) error {
	for _, s := range p.spans {
		seconds, err := drv.Elapsed(s.from, s.to)
		if err != nil {
			return err
		}
		t := p.times[s.name]
		if t == nil {
			t = &kernelTime{}
			p.times[s.name] = t
		}
		t.calls++
		t.seconds += seconds
		p.spare = append(p.spare, s.from, s.to)
	}
	p.spans = p.spans[:0]
	return nil
}

// print writes the kernels by descending time.
func (p *profile) print(w io.Writer) {
	total := 0.0
	for _, t := range p.times {
		total += t.seconds
	}
	names := slices.SortedFunc(maps.Keys(p.times), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.times[b].seconds, p.times[a].seconds), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "%10s %6s %9s %12s  kernel\n", "ms", "share", "calls", "µs a call")
	for _, name := range names {
		t := p.times[name]
		fmt.Fprintf(w, "%10.3f %5.1f%% %9d %12.2f  %s\n",
			1e3*t.seconds, 100*t.seconds/max(total, 1e-12), t.calls, 1e6*t.seconds/float64(t.calls), name)
	}
}
