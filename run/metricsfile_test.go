package run

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"anneal/train"
)

// disk is a file that fails while full is set.
type disk struct {
	mu   sync.Mutex
	full bool
	text bytes.Buffer
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		n, _ := d.text.Write(p[:min(3, len(p))]) // and the line is torn
		return n, syscall.ENOSPC
	}
	return d.text.Write(p)
}

func (d *disk) Close() error { return nil }

func (d *disk) fill(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// said collects warnings of any goroutine.
type said struct {
	mu   sync.Mutex
	list []string
}

func (s *said) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, text)
}

func (s *said) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.list, "\n")
}

// Lines of the time in which the disk was full are written once it is not, whole and in order.
func TestMetricsOfAFullDiskAreFilledIn(t *testing.T) {
	var d disk
	var s said
	m := newMetricsFile(&d, time.Millisecond, s.warn)
	for step := 1; step <= 30; step++ {
		if step%10 == 5 {
			m.flush(time.Minute)
			d.fill(step < 25)
		}
		m.write(train.Event{Step: step})
	}
	d.fill(false)
	m.close()
	for i, line := range strings.SplitAfter(strings.TrimSuffix(d.text.String(), "\n"), "\n") {
		if !strings.HasPrefix(line, fmt.Sprintf(`{"step":%d,`, i+1)) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
	if n := strings.Count(d.text.String(), "\n"); n != 30 {
		t.Errorf("%d lines", n)
	}
	if text := s.all(); !strings.Contains(text, "metrics cannot be recorded at present: no space left on device") ||
		!strings.Contains(text, "metrics are recorded again") || strings.Contains(text, "lost") {
		t.Errorf("it says %s", text)
	}
}

// What does not fit in memory is lost, and its steps are named.
func TestLostMetricsAreNamed(t *testing.T) {
	d := disk{full: true}
	var s said
	m := newMetricsFile(&d, time.Hour, s.warn)
	m.write(train.Event{Step: 1})
	for !strings.Contains(s.all(), "at present") { // the file has it
		time.Sleep(time.Millisecond)
	}
	for step := 2; step <= metricsLines+4; step++ {
		m.write(train.Event{Step: step})
	}
	d.fill(false)
	m.close()
	if text := s.all(); !strings.Contains(text, "the metrics of steps 2 to 4 are lost") {
		t.Errorf("it says %s", text)
	}
	if n := strings.Count(d.text.String(), "\n"); n != metricsLines+1 {
		t.Errorf("%d lines, want %d", n, metricsLines+1)
	}
}

// A run that ends while the disk is full says which lines are missing.
func TestMetricsThatWereNeverWrittenAreNamed(t *testing.T) {
	d := disk{full: true}
	var s said
	m := newMetricsFile(&d, time.Hour, s.warn)
	for step := 3; step <= 5; step++ {
		m.write(train.Event{Step: step})
	}
	m.close()
	if text := s.all(); !strings.Contains(text, "the metrics of steps 3 to 5 are lost") ||
		strings.Count(text, "at present") != 1 {
		t.Errorf("it says %s", text)
	}
}
