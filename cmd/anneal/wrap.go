package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// helpColumns is the width of help without a terminal.
const helpColumns = 100

// columns returns the width for lines written to w, from the terminal or the variable COLUMNS; 0 is no limit.
func columns(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= 20 {
		return n
	}
	f := screen(w)
	if f == nil {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 {
		return 80
	}
	return width
}

// screen returns the terminal that w writes to, nil if it is none.
func screen(w io.Writer) *os.File {
	switch under := w.(type) {
	case *results:
		return screen(under.w)
	case *console:
		return screen(under.w)
	case *os.File:
		if term.IsTerminal(int(under.Fd())) {
			return under
		}
	}
	return nil
}

// wrap breaks the lines of a text at spaces, so that no line is wider than columns unless a word is. Added lines begin
// with hang. If columns is 0, the text is unchanged.
func wrap(text string, columns int, hang string) string {
	if columns <= utf8.RuneCountInString(hang)+10 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, newline := strings.CutSuffix(line, "\n")
		least := utf8.RuneCountInString(line) - utf8.RuneCountInString(strings.TrimLeft(line, " #"))
		for utf8.RuneCountInString(line) > columns {
			at := breakAt(line, columns, least)
			if at < 0 {
				break
			}
			b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
			line = hang + strings.TrimLeft(line[at:], " ")
			least = utf8.RuneCountInString(hang)
		}
		b.WriteString(line)
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// breakAt returns the index of the last space within columns, or else of the first space after them; −1 if there is
// none. It does not break before column least.
func breakAt(line string, columns, least int) int {
	at, column := -1, 0
	for i, r := range line {
		if r == ' ' && column > least && (column <= columns || at < 0) {
			at = i
		}
		column++
		if column > columns && at >= 0 {
			break
		}
	}
	return at
}

// prosef writes lines of results for people, wrapped if the output is a terminal.
func (s *session) prosef(hang, format string, args ...any) {
	s.printf("%s", wrap(fmt.Sprintf(format, args...), columns(s.out()), hang))
}

// row writes a row of a table whose last column is text. On a narrow terminal the text stands below the other columns.
func (s *session) row(head, text string) {
	const enough = 40 // columns for the text
	hang := strings.Repeat(" ", utf8.RuneCountInString(head)+1)
	if wide := columns(s.out()); wide > 0 && wide < len(hang)+enough {
		head, hang = strings.TrimRight(head, " ")+"\n     ", "      "
	}
	s.prosef(hang, "%s %s\n", head, text)
}

// printHelp prints help in the width of the terminal.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	width := columns(ctx.Stdout)
	if width == 0 {
		width = helpColumns
	}
	was, set := os.LookupEnv("COLUMNS")
	os.Setenv("COLUMNS", strconv.Itoa(width)) // the parser reads it
	out := ctx.Stdout
	var text strings.Builder
	ctx.Stdout = &text
	if group := ctx.Selected(); group != nil && group.Detail == "" {
		group.Detail = example(examplesOf(group)...)
	}
	err := kong.DefaultHelpPrinter(o, ctx)
	ctx.Stdout = out
	if os.Setenv("COLUMNS", was); !set {
		os.Unsetenv("COLUMNS")
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "    anneal ") {
			line = wrapCommand(line, width)
		}
		if _, err := io.WriteString(out, wrap(line, width, strings.Repeat(" ", lastColumn(line)))); err != nil {
			return err
		}
	}
	return nil
}

// helpOf returns the help of a flag or an argument, with the default that a placeholder hides.
func helpOf(v *kong.Value) string {
	text := kong.DefaultHelpValueFormatter(v)
	if v.Flag == nil || v.Flag.PlaceHolder == "" || v.Default == "" || strings.Contains(text, "efault") {
		return text
	}
	return text + " Default: " + v.Default + "."
}

// examplesOf returns the first example of a command, or of each command of a group.
func examplesOf(node *kong.Node) (list []string) {
	for line := range strings.Lines(node.Detail) {
		if text, ok := strings.CutPrefix(line, "    anneal "); ok {
			return []string{"anneal " + strings.TrimSuffix(text, "\n")}
		}
	}
	for _, child := range node.Children {
		if !child.Hidden {
			list = append(list, examplesOf(child)...)
		}
	}
	return list
}

// wrapCommand breaks a line for a shell between its words, but not between a flag and its value.
func wrapCommand(line string, columns int) string {
	const indent, hang = "    ", "        "
	var b strings.Builder
	b.WriteString(indent)
	width := len(indent)
	words := commandWords(line)
	for i := 0; i < len(words); i++ {
		word := words[i]
		if strings.HasPrefix(word, "--") && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			word += " " + words[i]
		}
		n := utf8.RuneCountInString(word)
		switch {
		case width == len(indent):
		case width+1+n > columns-2: // the backslash
			b.WriteString(" \\\n" + hang)
			width = len(hang)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String() + "\n"
}

// commandWords cuts a command at its spaces, but not within quotes.
func commandWords(line string) []string {
	quote := rune(0)
	return strings.FieldsFunc(line, func(r rune) bool {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		}
		return quote == 0 && (r == ' ' || r == '\n')
	})
}

// lastColumn returns where the last column of a line of help begins: after two spaces in its first half, or else at a
// small indent.
func lastColumn(line string) int {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	if gap := strings.LastIndex(line[:min(len(line), 40)], "  "); gap > indent {
		return utf8.RuneCountInString(line[:gap+2])
	}
	return indent + 4
}
