package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"anneal/dash"

	"golang.org/x/term"
)

// Escape sequences that switch a terminal to its alternate screen without a cursor, and back.
const (
	screenOpen  = "\x1b[?1049h\x1b[?25l"
	screenClose = "\x1b[?25h\x1b[?1049l"
	// A terminal that supports synchronised output shows a frame all at once; others ignore the sequence.
	frameBegin = "\x1b[?2026h\x1b[H"
	frameEnd   = "\x1b[J\x1b[?2026l"
	lineEnd    = "\x1b[K\r\n"
)

const redrawEvery = time.Second

// watchTerminal shows runs in the terminal until ctx ends or q is pressed.
func (s *session) watchTerminal(ctx context.Context, w *dash.Watch) error {
	in, inOK := s.stdin.(*os.File)
	out := screen(s.stdout.w)
	if !inOK || out == nil || !term.IsTerminal(int(in.Fd())) {
		return &usageError{"--tty needs a terminal for input and output", "try `anneal watch RUN --json`"}
	}
	if os.Getenv("TERM") == "dumb" {
		return &usageError{"--tty needs a terminal that can place text, but TERM is dumb",
			"try `anneal watch RUN --json`"}
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer term.Restore(int(in.Fd()), before)
	io.WriteString(out, screenOpen)
	defer io.WriteString(out, screenClose)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.Read()
	go w.Follow(ctx)
	keys := make(chan byte)
	go readKeys(in, keys) // ends with the process
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	var show dash.Screen
	for {
		show.Columns, show.Rows, err = term.GetSize(int(out.Fd()))
		if err != nil {
			return err
		}
		if _, err := io.WriteString(out, frame(w.Draw(show, time.Now()))); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case k := <-keys:
			const ctrlC, ctrlD = 3, 4
			switch k {
			case 'q', ctrlC, ctrlD:
				return nil
			case 'n', '\t':
				show.Run = (show.Run + 1) % len(w.Dirs())
			case 'l':
				show.Log = !show.Log
			case 'x':
				show.Axis = show.Axis.Next()
			}
		}
	}
}

// frame overwrites the lines on the terminal, so that unchanged text does not flicker.
func frame(lines []string) string {
	return frameBegin + strings.Join(lines, lineEnd) + "\x1b[K" + frameEnd
}

func readKeys(in io.Reader, keys chan<- byte) {
	var b [1]byte
	for {
		if _, err := in.Read(b[:]); err != nil {
			return
		}
		keys <- b[0]
	}
}
