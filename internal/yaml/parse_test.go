package yaml

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

// repeat returns a function that makes a text of size bytes: first, then again repeated.
func repeat(first, again string) func(size int) string {
	return func(size int) string { return first + strings.Repeat(again, max(0, size-len(first))/len(again)) }
}

// hostile holds functions that return a hostile text of about a given size.
var hostile = map[string]func(size int) string{
	"open brackets": repeat("", "["), "open braces": repeat("", "{"), "open maps": repeat("", "{a: "),
	"closed": repeat("", "]"), "nested lists": repeat("", "- "), "nested keys": repeat("", "? "),
	"nested maps": repeat("", "a: "), "colons": repeat("", ": "), "empty lists": repeat("", "[],"),
	"a list": repeat("[", "a,"), "a list in lines": repeat("[", "a,\n"), "a map": repeat("{", "a: b,\n"),
	"keys in a list": repeat("[", "a: "), "explicit keys in a list": repeat("[", "? "),
	"lists as keys": repeat("", "[a]: "), "items": repeat("", "- a\n"), "empty items": repeat("", "-\n"),
	"keys": repeat("", "a:\n"), "explicit keys": repeat("", "? a\n: b\n"), "indented items": repeat("", "- \n  "),
	"plain lines": repeat("", "abc\n"), "indented lines": repeat("a: b\n", "  abc\n"),
	"literal": repeat("a: |\n", "  abc\n"), "literal and spaces": repeat("a: |\n  x\n", "  \n"),
	"literal and nothing": repeat("a: |\n  x\n", "\n"),
	"kept":                repeat("a: |+\n", "  abc\n"), "folded": repeat("a: >-\n", "  abc\n"),
	"literals":             repeat("", "a: |\n"),
	"literals and nothing": repeat("", "a: |\n  x"+strings.Repeat("\n", maxEmpty)),
	"literals and CRLF":    repeat("", "a: |\r\n  x"+strings.Repeat("\r\n", maxEmpty)),
	"long literal and nothing": func(size int) string {
		return "a: |\n  " + strings.Repeat("x", size-maxEmpty-8) + strings.Repeat("\n", maxEmpty)
	},
	"tabs":                 repeat("", "\t"),
	"quoted tabs":          func(size int) string { return "a: \"" + strings.Repeat("\t", size-6) + "x\"" },
	"lines of quoted tabs": repeat("a: \"", strings.Repeat("\t", maxRun)+strings.Repeat("x", 1000)+"\n"),
	"<":                    repeat("", "<"), "some <": repeat("", strings.Repeat("<", maxRun)+" "),
	"<<":      repeat("", "<< "),
	"<<:":     repeat("", "<<:"),
	"anchors": repeat("", "&a "), "aliases": repeat("", "*a "), "an alias often": repeat("[&x 1,", "*x,"),
	"tags": repeat("", "! "), "types": repeat("", "!!x "), "directives": repeat("", "%a\n"),
	"documents": repeat("", "---\n"), "ends": repeat("", "...\n"), "reserved": repeat("", "@"),
	"ticks": repeat("", "`"), "newlines": repeat("", "\n"), "returns": repeat("", "\r"), "spaces": repeat("", " "),
	"spaces in lines": repeat("", " \n"), "comments": repeat("", "#\n"), "hashes": repeat("", "#"),
	"quotes": repeat("", `"`), "single quotes": repeat("", "'"), "empty strings": repeat("", `""`),
	"escapes": repeat("", `"\`), "wrong escapes": repeat("", `"\q"`),
	"quoted lines": func(size int) string { return "a: \"" + strings.Repeat("b\n", size/2-4) + "\"" },
	"single quoted spaces": func(size int) string {
		return "a: '" + strings.Repeat(" b\n", size/3-4) + "'"
	},
	"commas": repeat("", ","), "digits": repeat("", "0"), "hexadecimal": repeat("0x", "f"), "1:1": repeat("", "1:1:"),
	"underscores": repeat("1", "_"),
	"deeper": func(size int) string {
		var b strings.Builder
		for i := 0; b.Len()+i+3 < size; i++ {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	},
	"keys that differ": func(size int) string {
		var b strings.Builder
		for i := 0; b.Len() < size-16; i++ {
			fmt.Fprintf(&b, "k%d: 1\n", i)
		}
		return b.String()
	},
	"under a long key": func(size int) string {
		return strings.Repeat("k", size/2) + ":\n" + strings.Repeat(" - 1\n", size/10)
	},
	"under a quoted key": func(size int) string {
		return `"` + strings.Repeat("k", size/2) + `": [` + strings.Repeat("1,", size/4-4)
	},
	"under an explicit key": func(size int) string {
		return "? " + strings.Repeat("k", size/2) + "\n: [" + strings.Repeat("1,", size/4-4)
	},
	"under many keys": func(size int) string {
		var b strings.Builder
		for i := range maxDepth - 2 {
			b.WriteString(strings.Repeat(" ", i) + strings.Repeat("k", maxKey) + ":\n")
		}
		for b.Len() < size-maxDepth-8 {
			b.WriteString(strings.Repeat(" ", maxDepth) + "- 1\n")
		}
		return b.String()
	},
	"in many brackets": func(size int) string {
		return strings.Repeat("{"+strings.Repeat("k", maxKey)+": ", maxDepth/2-1) + "[" +
			strings.Repeat("1,", maxTokens/2-200) + "]"
	},
}

// No text takes more than 100 ms and 64 MiB, and error messages are short.
func TestHostileTextsAreParsedInBoundedTimeAndMemory(t *testing.T) {
	for name, text := range hostile {
		for _, size := range []int{MaxBytes, 1 << 20} {
			text := []byte(text(size))
			err := filetest.Bounded(t, name, func() error { _, err := Parse(text); return err })
			if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Message == "" || len(err.Error()) > 300) {
				t.Errorf("%s: %.400v", name, err)
			}
		}
	}
}

// nested returns a text with values nested depth times.
func nested(depth int, open, inside, close string) string {
	return strings.Repeat(open, depth) + inside + strings.Repeat(close, depth)
}

func TestLimits(t *testing.T) {
	block := func(depth int, line string) string {
		var b strings.Builder
		for i := range depth {
			b.WriteString(strings.Repeat(" ", i) + line)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text, want string // want: a part of the error; "" for none
	}{
		{"64 lists", nested(64, "[", "1", "]"), ""},
		{"65 lists", nested(65, "[", "1", "]"), "line 1: more than 64 values nested"},
		{"32 maps", nested(32, "{a: ", "1", "}"), ""},
		{"many lists side by side", "[" + strings.Repeat("[1], ", 500) + "]", ""},
		{"many maps side by side", "[" + strings.Repeat("{a: 1, b: 2}, ", 500) + "]", ""},
		{"64 block maps", block(64, "a:\n"), ""},
		{"65 block maps", block(65, "a:\n"), "line 65: more than 64 values nested"},
		{"65 block lists", block(65, "-\n"), "line 65: more than 64 values nested"},
		{"65 lists in a line", strings.Repeat("- ", 65) + "a", "line 1: more than 64 values nested"},
		{"many block maps side by side",
			strings.Repeat("a:\n  b: 1\n", 1) + strings.Repeat("c:\n  - d: 1\n    e: 2\n", 1), ""},
		{"brackets in a string", `a: "` + strings.Repeat("[", 1000) + `"`, ""},
		{"brackets in a comment", "a: 1 # " + strings.Repeat("[", 1000), ""},
		{"8,192 tokens", "[" + strings.Repeat("1,", 4095) + "]", ""},
		{"8,193 tokens", "[" + strings.Repeat("1,", 4095) + "1]", "more than 8192 keys"},
		{"comments count for nothing", strings.Repeat("# a\n", 10000) + "a: 1\n", ""},
		{"64 KiB", "a: " + strings.Repeat("x", MaxBytes-3), ""},
		{"64 KiB and 1 byte", "a: " + strings.Repeat("x", MaxBytes-2), "larger than 64 KiB"},
		{"a key of 64 bytes", strings.Repeat("k", 64) + ": 1", ""},
		{"a key of 65 bytes", strings.Repeat("k", 65) + ": 1", "a key of 65 bytes"},
		{"an anchor", "a: &x 1", "line 1: anchors"}, {"an alias", "a: 1\nb: *x", "line 2: anchors"},
		{"a merge key", "<<: {a: 1}", "anchors"}, {"a tag", "a: !!str 1", "line 1: tags"},
		{"32 empty lines", "a: 1" + strings.Repeat("\n \t\r\n", 16) + "\nb: 2", ""},
		{"33 empty lines", "a: 1" + strings.Repeat("\n \n", 17) + "b: 2", "line 35: more than 32 lines without text"},
		{"a document and its end", "--- \na: 1\n...\n", ""},
		{"many documents", strings.Repeat("a: 1\n---\n", 9), "line 18: more than 8 lines of ---"},
		{"no YAML", "a: [1", "line 1: not YAML"},
		{"an alias in a string", `a: "*x"` + "\nb: 3 * 4 & 5\nc: a<<b", ""},
	} {
		_, err := Parse([]byte(c.text))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Any text is parsed or refused with an *Error that is not empty, in at most 1 MiB of allocations plus 1 KiB for each
// byte.
func FuzzParse(f *testing.F) {
	texts := []string{"signals: true\nstages:\n  - gopher_quality: {words: {min: 20}}\n" +
		"  - c4: {a: [1, 2.5, .inf, \"x\\n\", 'y']} # why\n"}
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		if text := hostile[name](1000); len(text) < 4096 { // longer ones are for the tests
			texts = append(texts, text)
		}
	}
	for i := range texts {
		f.Add(uint8(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		text := filetest.Edit(t, []byte(texts[int(which)%len(texts)]), edits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := Parse(text)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(1<<20+1024*len(text)) {
			t.Fatalf("%d bytes allocated for %d of text", n, len(text))
		}
		if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Message == "") || err == nil && file == nil {
			t.Fatalf("%v, %v", file, err)
		}
	})
}
