package dash

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"anneal/internal/fileio"
)

// A follower reads metrics.jsonl as it grows. A file that was cut or replaced, as resumes and rewinds do, is read from
// its start.
type follower struct {
	path string

	mu         sync.Mutex // held for one piece of the file at a time
	generation int        // counts how often reading began
	table      *table
	alerts     *detector
	end        place // of the last step
	val        entry // the last one with an evaluation; its step is 0 before the first
	lines      int   // that could be read
	bad        int   // that could not
	rewound    int   // steps that rewinds removed
	size       int64 // of the file
	changed    time.Time

	read   int64 // bytes, of whole lines
	tail   []byte
	file   os.FileInfo
	recent float64 // seconds of a step, smoothed; 0 before the first
	scan   scanner
	piece  []byte
}

const (
	pieceBytes = 1 << 20 // read at a time; a longer line counts as broken
	tailBytes  = 128     // last bytes read; a replaced file has others
	// maxGap is more steps than can be missing between two lines; a line beyond it counts as broken.
	maxGap = 1 << 24
)

func newFollower(path string) *follower {
	f := &follower{path: path, piece: make([]byte, pieceBytes)}
	f.reset()
	return f
}

func (f *follower) reset() {
	f.generation++
	f.table, f.alerts, f.recent, f.end, f.val = newTable(), newDetector(), 0, place{}, entry{}
	f.lines, f.bad, f.rewound, f.read, f.tail, f.file = 0, 0, 0, 0, nil, nil
}

// poll reads new lines. A missing file has none.
func (f *follower) poll() error {
	file, err := fileio.OpenRegular(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.gone()
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f.mu.Lock()
	if f.replaced(file, info) {
		f.reset()
	}
	f.file, f.size, f.changed = info, info.Size(), info.ModTime()
	f.mu.Unlock()
	for {
		more, err := f.next(file)
		if err != nil || !more {
			return err
		}
	}
}

// gone forgets a file that is no longer there: the run was moved, or makes room for another of its name.
func (f *follower) gone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		f.reset()
		f.size, f.changed = 0, time.Time{}
	}
}

// replaced reports whether the file is no longer the one that was read.
func (f *follower) replaced(file *os.File, info os.FileInfo) bool {
	if f.file == nil {
		return false
	}
	if !os.SameFile(f.file, info) || info.Size() < f.read {
		return true
	}
	tail := make([]byte, len(f.tail))
	n, _ := file.ReadAt(tail, f.read-int64(len(tail)))
	return !bytes.Equal(tail[:n], f.tail)
}

// next reads a piece of the file, and reports whether there may be more. A last line without its end is left for later.
func (f *follower) next(file io.ReaderAt) (more bool, err error) {
	n, err := file.ReadAt(f.piece, f.read)
	if err != nil && err != io.EOF {
		return false, err
	}
	whole := bytes.LastIndexByte(f.piece[:n], '\n') + 1
	f.mu.Lock()
	defer f.mu.Unlock()
	if whole == 0 {
		if n < len(f.piece) {
			return false, nil
		}
		whole = n // such a long line counts as broken, and its end as another
		f.bad++
	} else {
		f.take(f.piece[:whole])
	}
	f.read += int64(whole)
	f.tail = append(f.tail[:0], f.piece[max(0, whole-tailBytes):whole]...)
	return n == len(f.piece), nil
}

// take takes whole lines.
func (f *follower) take(lines []byte) {
	at := f.read
	for line := range bytes.Lines(lines) {
		f.line(line, at)
		at += int64(len(line))
	}
}

// line takes a line that begins at an offset of the file.
func (f *follower) line(line []byte, offset int64) {
	fields, err := f.scan.scan(line)
	e := entryOf(fields)
	if err != nil || e.step < 1 || f.end.step > 0 && e.step > f.end.step+maxGap {
		f.bad++
		return
	}
	f.lines++
	if e.rewound {
		f.rewound++
		return
	}
	if !e.skipped { // only lines of skipped steps have the number
		fields = append(fields, field{name: []byte("skipped")})
	}
	f.end = f.place(e, offset)
	f.table.add(f.end, fields)
	f.alerts.step(e)
	if !math.IsNaN(e.valLoss) {
		f.val = e
	}
}

// An entry holds the numbers of a line that this package computes with. Unknown numbers are NaN.
type entry struct {
	step                               int
	tokens, seconds, flops, loss, rate float64
	lr, valLoss, valBits               float64
	skipped, rewound                   bool
}

// entryOf returns the entry of a line.
func entryOf(fields []field) entry {
	e := entry{
		tokens: math.NaN(), seconds: math.NaN(), flops: math.NaN(), loss: math.NaN(), rate: math.NaN(),
		lr: math.NaN(), valLoss: math.NaN(), valBits: math.NaN(),
	}
	for _, f := range fields {
		switch string(f.name) {
		case "step":
			if f.value >= 1 && f.value < 1<<53 {
				e.step = int(f.value)
			}
		case "tokens":
			e.tokens = f.value
		case "step_seconds":
			e.seconds = f.value
		case "flops":
			e.flops = f.value
		case "loss":
			e.loss = f.value
		case "tokens_per_second":
			e.rate = f.value
		case "lr":
			e.lr = f.value
		case "val_loss":
			e.valLoss = f.value
		case "val_bits_per_byte":
			e.valBits = f.value
		case "skipped":
			e.skipped = f.value != 0
		case "rewound":
			e.rewound = f.value != 0
		}
	}
	return e
}

// place returns the end of the next step on the axes. If the run did not record the seconds of its steps, they are
// computed from its rate.
func (f *follower) place(e entry, offset int64) place {
	seconds := e.seconds
	if math.IsNaN(seconds) && e.rate > 0 {
		seconds = (e.tokens - f.end.tokens) / e.rate
	}
	if seconds > 0 {
		if f.recent == 0 {
			f.recent = seconds
		}
		f.recent += (seconds - f.recent) / 20
	}
	return place{e.step, e.tokens, f.end.seconds + seconds, f.end.flops + e.flops, offset}
}
