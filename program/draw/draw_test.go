package draw

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	_ "anneal/internal/torture"
	"anneal/program"
)

func panel(t *testing.T, name string, stages, micro int) Panel {
	s, err := program.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := s.Make(stages, micro)
	if err != nil {
		t.Fatal(err)
	}
	line, err := program.Simulate(lists, program.Even(stages, s.Chunks, 1, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	return Panel{Title: name, Lists: lists, Chunks: s.Chunks, Timeline: line}
}

func text(t *testing.T, p Panel, columns int) string {
	var b strings.Builder
	if err := p.Text(&b, columns); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextOfAPipeline(t *testing.T) {
	const want = "" +
		"stage 0  F0 F1 ......B0─── F2 B1─── F3 B2─── ...B3─── \n" +
		"stage 1  ...F0 B0─── F1 B1─── F2 B2─── F3 B3─── ......\n"
	if got := text(t, panel(t, "1f1b", 2, 4), 80); got != want {
		t.Errorf("1F1B is drawn as\n%swant\n%s", got, want)
	}
	const zero = "" +
		"stage 0  F0 F1 ...B0 W0 F2 B1 W1 B2 W2 \n" +
		"stage 1  ...F0 B0 F1 B1 W0 F2 B2 W1 W2 \n"
	if got := text(t, panel(t, "zb-h1", 2, 3), 80); got != zero {
		t.Errorf("ZB-H1 is drawn as\n%swant\n%s", got, zero)
	}
}

// An overview has a line for each stage, however long the step is: its letters are about as many as the stage computes.
func TestAnOverviewOfAStep(t *testing.T) {
	overview := func(p Panel, columns int) string {
		var b strings.Builder
		if err := p.Overview(&b, columns); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const want = "" +
		"stage 0  FF..BBFBBFBB.BB\n" +
		"stage 1  .FBBFBBFBBFBB..\n"
	if got := overview(panel(t, "1f1b", 2, 4), 25); got != want {
		t.Errorf("the overview is\n%swant\n%s", got, want)
	}
	for _, name := range []string{"1f1b", "interleaved:2", "zb-h1"} {
		lines := strings.Split(strings.TrimSpace(overview(panel(t, name, 4, 64), 100)), "\n")
		if len(lines) != 4 {
			t.Fatalf("%s: %d lines", name, len(lines))
		}
		for _, l := range lines {
			if len(l) != 99 || strings.Count(l, ".") > 15 || !strings.ContainsAny(l, "Ff") ||
				!strings.ContainsAny(l, "Bb") {
				t.Errorf("%s: %q", name, l)
			}
		}
	}
}

// However long a step is, no line is longer than was asked for, and there are not many.
func TestTextKeepsToItsColumns(t *testing.T) {
	for _, name := range []string{"gpipe", "interleaved:3", "zb-h1"} {
		for _, micro := range []int{4, 40, 400} {
			lines := strings.Split(text(t, panel(t, name, 4, micro), 80), "\n")
			if len(lines) > mostBlocks*5+2 {
				t.Errorf("%s of %d micro-batches takes %d lines", name, micro, len(lines))
			}
			for _, l := range lines {
				if n := len([]rune(l)); n >= 80 {
					t.Errorf("%s of %d micro-batches has a line of %d columns: %s", name, micro, n, l)
				}
			}
		}
	}
}

// A step that is little longer than a line is drawn in one block.
func TestTextLeavesNoShortBlock(t *testing.T) {
	p := panel(t, "gpipe", 4, 4)
	_, length := p.scale()
	for columns, want := range map[int]int{length * 19 / 20: 1, length * 2 / 3: 2} {
		if blocks := strings.Count(text(t, p, columns+len("stage 0  ")+1), "stage 3"); blocks != want {
			t.Errorf("a step of %d columns has %d blocks of %d, want %d", length, blocks, columns, want)
		}
	}
}

// The picture is well-formed, and has a bar for every computation beside the ground and a row for each stage.
func TestSVGHasEveryComputation(t *testing.T) {
	panels := []Panel{panel(t, "1f1b", 4, 8), panel(t, "interleaved:2", 4, 8)}
	var b bytes.Buffer
	if err := SVG(&b, panels); err != nil {
		t.Fatal(err)
	}
	bars := 0
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			for _, a := range e.Attr {
				if a.Name.Local == "stroke" {
					bars++
				}
			}
		}
	}
	if want := 4*8*2 + 4*8*2*2; bars != want {
		t.Errorf("the picture has %d bars, want %d", bars, want)
	}
}
