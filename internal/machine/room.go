package machine

import (
	"fmt"
	"strings"
)

// Part is a part of the memory that a command needs.
type Part struct {
	What  string // such as "sorting"
	Bytes int64
	Flag  string // the flag that changes it, such as "--memory"; "" if there is none
}

// RoomError means that a command needs more memory than is available.
type RoomError struct {
	Parts     []Part
	Available int64
	Try       string // the advice; "" suggests a smaller value for the flag of the largest part
}

// Most returns how many of the available bytes a plan may use; the rest is for the kernel and for other processes.
func Most(available int64) int64 { return available - available/8 }

// Room returns a *RoomError if the parts need more than the available bytes. If these are 0, they are unknown.
func Room(available int64, parts ...Part) error {
	e := &RoomError{Parts: parts, Available: available}
	if available == 0 || e.Need() <= available {
		return nil
	}
	return e
}

// Need returns the sum of the parts.
func (e *RoomError) Need() (n int64) {
	for _, p := range e.Parts {
		n += p.Bytes
	}
	return n
}

// Error lists the parts.
func (e *RoomError) Error() string {
	var list []string
	try := e.Try
	most := int64(0)
	for _, p := range e.Parts {
		if p.Bytes == 0 {
			continue
		}
		text := fmt.Sprintf("%s %s", p.What, size(p.Bytes))
		if p.Flag != "" {
			text += " (" + p.Flag + ")"
		}
		list = append(list, text)
		if e.Try == "" && p.Flag != "" && p.Bytes > most {
			try, most = "a smaller "+p.Flag, p.Bytes
		}
	}
	text := fmt.Sprintf("this needs %s of memory, but %s are available\n  %s",
		size(e.Need()), size(e.Available), strings.Join(list, ", "))
	if try != "" {
		text += "\n  try " + try
	}
	return text
}

func size(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20)
}
