package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"anneal/internal/fileio"
	"anneal/internal/relay"
)

// journal writes journal.jsonl, which records the events of a run besides its steps: one line for each start, end,
// warning and remark. A disk that stalls or fails does not delay the run: the newest thousand lines wait in memory.
type journal struct {
	f     *appendFile
	relay *relay.Relay
	step  atomic.Int64 // current step of the run; atomic, because the goroutine that saves also writes warnings
}

// JournalLine is one line of journal.jsonl.
type JournalLine struct {
	Time  time.Time `json:"time"`
	Step  int       `json:"step"`
	Event string    `json:"event"` // started, continued, ended, stopped, failed, diverged, warning, note, rewound
	Text  string    `json:"text,omitempty"`
}

const (
	journalLines = 1000
	journalRetry = time.Second
	// sinkPatience is how long the end of a run waits for a file that stalls.
	sinkPatience = 5 * time.Second
)

func (d runDir) journal() string { return filepath.Join(string(d), "journal.jsonl") }

// openJournal opens the journal of a run that is at a step. A last line that a power cut or a full disk left
// incomplete is removed, or it would spoil the next.
func openJournal(d runDir, step int) (*journal, error) {
	if err := cutIncomplete(d.journal()); err != nil {
		return nil, fmt.Errorf("cannot write the journal: %w", err)
	}
	f, err := openAppend(d.journal())
	if err != nil {
		return nil, fmt.Errorf("cannot write the journal: %w", err)
	}
	j := &journal{f: f, relay: relay.New(f, relay.Options{Pieces: journalLines, Retry: journalRetry})}
	j.step.Store(int64(step))
	return j, nil
}

// cutIncomplete removes an incomplete last line from a file, if the file exists.
func cutIncomplete(path string) error {
	f, err := fileio.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	from := max(0, info.Size()-longestLine)
	tail := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(tail, from); err != nil {
		return err
	}
	end := int64(bytes.LastIndexByte(tail, '\n')) + 1
	if end == int64(len(tail)) || end == 0 && from > 0 { // whole, or no journal at all
		return nil
	}
	return os.Truncate(path, from+end)
}

// write notes an event; on a nil journal it does nothing.
func (j *journal) write(event, text string) {
	if j == nil {
		return
	}
	line, err := json.Marshal(JournalLine{time.Now().UTC().Truncate(time.Millisecond), int(j.step.Load()), event, text})
	if err == nil {
		j.relay.Write(append(line, '\n'))
	}
}

func (j *journal) close() {
	if j != nil && j.relay.Close(sinkPatience) {
		j.f.Close()
	}
}

// startJournal opens the run's journal. From then on it holds every warning.
func (s *session) startJournal() error {
	before, err := s.dir.past()
	if err != nil {
		return err
	}
	s.restarts = before.starts
	if s.journal, err = openJournal(s.dir, s.trainer.Position().Step); err != nil {
		return err
	}
	warn := s.Warn
	s.Warn = func(text string) {
		s.journal.write("warning", text)
		warn(text)
	}
	if before.killed {
		s.journal.write("note", "the previous command was killed: it did not record its end")
	}
	if s.rewound { // the process is the same
		s.restarts--
		s.journal.write("continued", "")
	} else {
		s.journal.write("started", "")
	}
	for _, text := range s.early {
		s.journal.write("warning", text)
	}
	return nil
}

// warnEarly warns before the run's journal is open, which will hold the warning, too.
func (s *session) warnEarly(text string) {
	s.early = append(s.early, text)
	s.Warn(text)
}

// past summarises what a journal says of earlier commands that trained the run.
type past struct {
	starts int
	first  int  // step at which the first of them began
	killed bool // the last command did not record its end
	saved  bool // the run had a checkpoint since it last began at step 0
	afresh bool // it was taken back to step 0 and has not begun again
}

// past reads the journal.
func (d runDir) past() (p past, err error) {
	err = eachLine(d.journal(), func(text []byte) error {
		var line JournalLine
		if json.Unmarshal(text, &line) != nil {
			return nil // a power cut
		}
		switch line.Event {
		case "started", "continued":
			if p.starts == 0 {
				p.first = line.Step
			}
			if line.Event == "started" {
				p.starts++
			}
			p.killed, p.afresh, p.saved = true, false, p.saved || line.Step > 0
		case "ended", "stopped": // which save first
			p.killed, p.saved = false, true
		case "failed", "diverged":
			p.killed = false
		case "rewound":
			p.afresh, p.saved = line.Step == 0, line.Step > 0
		}
		return nil
	})
	if err != nil {
		return p, fmt.Errorf("cannot read the journal: %w", err)
	}
	return p, nil
}

// ended reports whether the last command that trained the run completed, and no rewind followed.
func (d runDir) ended() bool {
	for _, line := range slices.Backward(Journal(string(d), journalLines)) {
		if line.Event != "warning" && line.Event != "note" {
			return line.Event == "ended"
		}
	}
	return false
}

// note passes a remark that is not a warning to the user and the journal.
func (s *session) note(text string) {
	s.journal.write("note", text)
	if s.Note != nil {
		s.Note(text)
	}
}

// endJournal notes how the run ended.
func (s *session) endJournal(r *Result, err error) {
	away, event, text := (*DivergedError)(nil), "ended", ""
	switch {
	case errors.As(err, &away):
		event, text = "diverged", err.Error()
	case err != nil:
		event, text = "failed", err.Error()
	case r.Interrupted:
		event = "stopped"
	case r.Better != nil && s.made > 0: // reports show it
		s.journal.write("warning", "an earlier evaluation was better: "+r.Better.String())
	}
	s.journal.write(event, text)
	s.alert(event, text)
}

// noteStep records the step just made, and the caller's remarks.
func (s *session) noteStep() {
	s.journal.step.Store(int64(s.trainer.Position().Step))
	if s.Notes == nil {
		return
	}
	for _, text := range s.Notes() {
		s.journal.write("note", text)
	}
}
