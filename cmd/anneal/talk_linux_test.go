package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal on which a person types.
type terminal struct {
	t      *testing.T
	master *os.File
	shown  string
}

// newTerminal returns both ends of a pseudo-terminal, or skips the test where there is none.
func newTerminal(t *testing.T) (person *terminal, program *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	return &terminal{t: t, master: master}, program
}

// sees waits until the terminal shows a text after the text seen before.
func (p *terminal) sees(text string) {
	p.t.Helper()
	buffer := make([]byte, 4096)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if at := strings.Index(p.shown, text); at >= 0 {
			p.shown = p.shown[at+len(text):]
			return
		}
		n, _ := unix.Read(int(p.master.Fd()), buffer)
		if n <= 0 {
			time.Sleep(5 * time.Millisecond)
		}
		p.shown += string(buffer[:max(n, 0)])
	}
	p.t.Fatalf("the terminal does not show %q but %q", text, p.shown)
}

func (p *terminal) types(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// At a terminal generate talks: Ctrl-C stops an answer but not the program; Ctrl-D ends the program.
func TestGenerateTalksAtATerminal(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "train", w.path("run.yaml"), "--out", w.path("run"))
	person, stdin := newTerminal(t)
	cmd := child(t, "generate", w.path("run"), "--temperature", "0")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdin, stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	person.sees("Ctrl-D: quit")
	person.sees("> ")
	person.types("/max-tokens 3\n")
	person.sees("at most 3 tokens")
	person.sees("> ")
	person.types("func\n")
	person.sees("func\r\nfunc") // the echo of the typed line, then the continued text
	person.sees("> ")
	person.types("/max-tokens 100000000\n")
	person.sees("at most 100000000 tokens")
	person.sees("> ")
	person.types("/reset\n")
	person.sees("a new text begins")
	person.sees("> ")
	person.types("func f1\n")
	person.sees("func f1\r\nfunc f1")
	person.types("\x03")
	person.sees("stopped")
	person.sees("> ")
	person.types("\x03")
	person.sees("Ctrl-D or /quit ends")
	person.types("\x04")
	if err := cmd.Wait(); err != nil {
		t.Errorf("at the end: %v", err)
	}
}
