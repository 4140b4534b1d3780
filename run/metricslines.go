package run

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"anneal/internal/fileio"
	"anneal/train"
)

// openMetrics opens the file for a run at the given step. It removes lines of later steps, which were written before a
// kill and will run again, and lines that cannot be read, of which it warns.
func openMetrics(path string, step int, warn func(string)) (*metricsFile, error) {
	c, err := trimMetrics(path, step)
	if err != nil {
		return nil, fmt.Errorf("cannot read metrics: %w", err)
	}
	if text := c.faults(path); text != "" {
		warn(text)
	}
	f, err := openAppend(path)
	if err != nil {
		return nil, fmt.Errorf("cannot write metrics: %w", err)
	}
	return newMetricsFile(f, metricsRetry, warn), nil
}

// trimMetrics removes the lines that a run at the given step does not have and those that cannot be read. It returns
// what was wrong: lines that cannot be read, and missing steps.
func trimMetrics(path string, step int) (*metricsCheck, error) {
	c := &metricsCheck{}
	kept, dropped, prefix := int64(0), false, true // whether the lines to keep are the first of the file
	err := eachLine(path, func(line []byte) error {
		if !c.keeps(line, step) {
			dropped = true
			return nil
		}
		kept, prefix = kept+int64(len(line)), prefix && !dropped
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.last > 0 {
		c.reach(step + 1)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil || info.Size() == kept:
		return c, nil
	case prefix:
		return c, os.Truncate(path, kept)
	}
	return c, rewriteMetrics(path, func(line []byte) []byte {
		if l, err := readLoggedStep(line); err != nil || !l.Rewound && l.Step > step {
			return nil
		}
		return line
	})
}

// rewriteMetrics replaces every line by the result of edit.
func rewriteMetrics(path string, edit func(line []byte) []byte) error {
	return fileio.Write(path, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 1<<16)
		err := eachLine(path, func(line []byte) error {
			_, err := out.Write(edit(line))
			return err
		})
		return errors.Join(err, out.Flush())
	})
}

// metricsCheck finds what is wrong with the lines of metrics.jsonl: lines that cannot be read, and steps that are
// missing between the first line and the last of the run's current history.
type metricsCheck struct {
	lines int   // so far
	last  int   // step so far, of the current history; 0 before the first
	bad   []int // numbers of lines, from 1
	holes []stepRange
}

// read takes the next line. It returns false for one that cannot be read. The last line may be incomplete: the run is
// writing it, or was killed.
func (c *metricsCheck) read(line []byte) (loggedStep, bool) {
	l, readable := c.parse(line)
	if readable && !l.Rewound {
		c.reach(l.Step)
	}
	return l, readable
}

// keeps is read for a run at a step; lines of later steps are ignored.
func (c *metricsCheck) keeps(line []byte, step int) bool {
	l, readable := c.parse(line)
	switch {
	case !readable || !l.Rewound && l.Step > step:
		return false
	case !l.Rewound:
		c.reach(l.Step)
	}
	return true
}

func (c *metricsCheck) parse(line []byte) (loggedStep, bool) {
	c.lines++
	l, err := readLoggedStep(line)
	if err != nil && !errors.Is(err, errCutShort) {
		c.bad = append(c.bad, c.lines)
	}
	return l, err == nil
}

// refuse records that the line just read has a step but is otherwise damaged.
func (c *metricsCheck) refuse(l loggedStep) {
	c.bad = append(c.bad, c.lines)
	if !l.Rewound {
		c.holes = append(c.holes, stepRange{l.Step, l.Step})
	}
}

// reach records the steps that are missing before a step.
func (c *metricsCheck) reach(step int) {
	if c.last > 0 && step > c.last+1 {
		c.holes = append(c.holes, stepRange{c.last + 1, step - 1})
	}
	c.last = max(c.last, step)
}

// faults describes the damage; "" if there is none.
func (c *metricsCheck) faults(path string) string {
	var parts []string
	if len(c.bad) > 0 {
		numbers := make([]string, len(c.bad))
		for i, n := range c.bad {
			numbers[i] = fmt.Sprint(n)
		}
		parts = append(parts, "unreadable lines are left out: "+firstFew(numbers))
	}
	if len(c.holes) > 0 {
		names := make([]string, len(c.holes))
		for i, h := range c.holes {
			names[i] = h.String()
		}
		parts = append(parts, "the metrics of these are missing: "+firstFew(names))
	}
	if parts == nil {
		return ""
	}
	return path + ": " + strings.Join(parts, "; ")
}

// firstFew joins the first elements of a list, followed by the number of further ones.
func firstFew(list []string) string {
	const few = 5
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

// loggedStep is the part of a line of metrics.jsonl that identifies its step and the end of its batch.
type loggedStep struct {
	Step    int
	Tokens  int64 // up to the end of the step
	Rewound bool
}

// longestLine is far longer than the metrics of a mix of a thousand sources, and than a warning.
const longestLine = 1 << 20

// eachLine calls f with every line of a file, including its line end, until f returns an error. For a line that is too
// long it passes only the line end. A missing file has no lines.
func eachLine(path string, f func(line []byte) error) error {
	file, err := fileio.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	in, line, long := bufio.NewReaderSize(file, 64<<10), []byte(nil), false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > longestLine; !long {
			line = append(line, part...)
		} else if line = line[:0]; err == nil {
			line = append(line, '\n')
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && err != io.EOF:
			return err
		case len(line) > 0 || long:
			if err := f(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		line, long = line[:0], false
	}
}

var (
	errCutShort = errors.New("the line is cut short")
	errNoStep   = errors.New("the line has no step")
)

// readLoggedStep parses a line. A truncated or damaged line is an error.
func readLoggedStep(line []byte) (l loggedStep, err error) {
	if !bytes.HasSuffix(line, []byte("\n")) {
		return l, errCutShort
	}
	if err = json.Unmarshal(line, &l); err == nil && l.Step < 1 {
		err = errNoStep
	}
	return l, err
}

// lastLogged returns the last step of the run's current history in metrics.jsonl; 0 if there is none.
func lastLogged(path string) (int, error) {
	var c metricsCheck
	err := eachLine(path, func(line []byte) error {
		c.read(line)
		return nil
	})
	return c.last, err
}

// loggedAfter returns the positions after p, up to the ends of the logged steps of the run's current history, ascending
// and beginning with p. context is the number of tokens of a sample.
func loggedAfter(path string, p train.Position, context int) ([]train.Position, error) {
	list := []train.Position{p}
	err := eachLine(path, func(line []byte) error {
		l, err := readLoggedStep(line)
		last := &list[len(list)-1]
		if read := l.Tokens - last.Tokens; err == nil && !l.Rewound && l.Step > last.Step && read > 0 {
			list = append(list, train.Position{
				Step: l.Step, Tokens: l.Tokens, Sample: last.Sample + uint64(read)/uint64(context),
			})
		}
		return nil
	})
	return list, err
}

// firstLogged returns the step of the first line of metrics.jsonl, and that of the first line of the run's current
// history; 0 if there is none.
func firstLogged(path string) (first, current int, err error) {
	err = eachLine(path, func(line []byte) error {
		l, err := readLoggedStep(line)
		if err != nil {
			return nil
		}
		first = cmp.Or(first, l.Step)
		if !l.Rewound {
			current = l.Step
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return first, current, err
}

// errFound ends the reading of a file.
var errFound = errors.New("found")

// markRewound marks the lines of steps after the given one as rewound, and removes lines that cannot be read, which it
// returns. A file without a readable line does not belong to a run and does not change.
func markRewound(path string, step int) (*metricsCheck, error) {
	c, sound := &metricsCheck{}, false
	err := eachLine(path, func(line []byte) error {
		_, ok := c.read(line)
		sound = sound || ok
		return nil
	})
	if err != nil || !sound {
		return &metricsCheck{}, err
	}
	return c, rewriteMetrics(path, func(line []byte) []byte {
		l, err := readLoggedStep(line)
		if err != nil {
			return nil
		}
		if l.Step <= step || l.Rewound {
			return line
		}
		body := bytes.TrimRight(line, "\r\n\t ")
		return slices.Concat(body[:len(body)-1], []byte(`,"rewound":true}`+"\n"))
	})
}
