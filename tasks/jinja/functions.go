package jinja

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Filters lists the filters, as in x|trim.
func Filters() []string {
	return []string{"capitalize", "default", "first", "int", "join", "last", "length", "list", "lower", "replace",
		"string", "title", "trim", "upper"}
}

// Methods lists the methods, as in x.strip().
func Methods() []string {
	return []string{"capitalize", "count", "endswith", "find", "get", "index", "items", "join", "keys", "lower",
		"lstrip", "replace", "rstrip", "split", "startswith", "strip", "title", "upper", "values"}
}

func (e *call) eval(s *scope) (any, error) {
	var x any
	var err error
	undefined := false
	if e.x != nil {
		if x, err = e.x.eval(s); err != nil && e.function != "default" {
			return nil, err
		}
		undefined = err != nil
	}
	args := make([]any, len(e.args))
	for i, a := range e.args {
		if args[i], err = a.eval(s); err != nil {
			return nil, err
		}
		if err := s.charge(e.line, weight(args[i])); err != nil {
			return nil, err
		}
	}
	if err := s.charge(e.line, weight(x)); err != nil {
		return nil, err
	}
	if e.x == nil {
		v, err := rangeOf(e.line, args)
		if err != nil {
			return nil, err
		}
		return s.made(e.line, v)
	}
	if e.function == "default" && len(args) <= 2 {
		switch { // with true as the second argument, also in place of a value that is false
		case !undefined && (len(args) < 2 || !truth(args[1]) || truth(x)):
			return x, nil
		case len(args) == 0:
			return "", nil
		}
		return args[0], nil
	}
	v, ok, err := e.apply(s, x, args)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fail(e.line, "%s with %d arguments means nothing for %s", e.function, len(args), short(x))
	}
	if text, isText := v.(string); isText && len(text) > maxText {
		return nil, s.tooLong(e.line, len(text))
	}
	return s.made(e.line, v)
}

// apply returns ok false if the function does not take such values.
func (e *call) apply(s *scope, x any, args []any) (v any, ok bool, err error) {
	texts := make([]string, len(args))
	for i, a := range args {
		if texts[i], ok = a.(string); !ok && !slices.Contains([]string{"get", "index", "join"}, e.function) {
			return nil, false, nil
		}
	}
	if m, isMap := x.(map[string]any); isMap && e.method {
		return ofMap(e.function, m, args)
	}
	text, isText := x.(string)
	if !isText && !e.method && slices.Contains([]string{"capitalize", "lower", "replace", "title", "trim", "upper"},
		e.function) {
		text, isText = Text(x), true // filters convert their input to a text
	}
	if isText {
		if v, ok, err := e.ofText(s, text, texts, args); ok || err != nil {
			return v, ok, err
		}
	}
	return e.ofAny(s, x, args, texts)
}

func (e *call) ofText(s *scope, x string, texts []string, args []any) (v any, ok bool, err error) {
	space := isSpace
	if len(texts) == 1 {
		space = func(r rune) bool { return strings.ContainsRune(texts[0], r) }
	}
	switch n := len(args); {
	case n == 0 && e.function == "lower":
		return Lower(x), true, nil
	case n == 0 && e.function == "upper":
		return Upper(x), true, nil
	case n == 0 && e.function == "capitalize":
		_, size := utf8.DecodeRuneInString(x)
		return titled(x[:size]) + strings.TrimPrefix(Lower(x), Lower(x[:size])), true, nil
	case n == 0 && e.function == "title" && e.method:
		return title(x, unicode.IsLetter, titled), true, nil
	case n == 0 && e.function == "title":
		return title(x, inPiece, Upper), true, nil
	case n < 2 && (e.function == "strip" || e.function == "trim"):
		return strings.TrimFunc(x, space), true, nil
	case n < 2 && e.function == "lstrip":
		return strings.TrimLeftFunc(x, space), true, nil
	case n < 2 && e.function == "rstrip":
		return strings.TrimRightFunc(x, space), true, nil
	case n == 2 && e.function == "replace":
		if grown := strings.Count(x, texts[0]) * len(texts[1]); grown > maxText {
			return nil, false, fail(e.line, "the text becomes longer than %d MiB", maxText>>20)
		}
		return strings.ReplaceAll(x, texts[0], texts[1]), true, nil
	case n == 1 && e.function == "startswith":
		return strings.HasPrefix(x, texts[0]), true, nil
	case n == 1 && e.function == "endswith":
		return strings.HasSuffix(x, texts[0]), true, nil
	case n == 1 && e.function == "count":
		return int64(strings.Count(x, texts[0])), true, nil
	case n < 2 && e.function == "split":
		parts := strings.FieldsFunc(x, isSpace)
		if n == 1 {
			if texts[0] == "" {
				return nil, false, fail(e.line, "an empty separator")
			}
			parts = strings.SplitN(x, texts[0], maxItems+1)
		}
		if len(parts) > maxItems {
			return nil, false, fail(e.line, "more than %d parts", maxItems)
		}
		return listOf(parts), true, nil
	case n == 1 && (e.function == "find" || e.function == "index" && isText(args[0])):
		at := strings.Index(x, texts[0])
		if at >= 0 {
			return int64(utf8.RuneCountInString(x[:at])), true, nil
		}
		if e.function == "find" {
			return int64(-1), true, nil
		}
		return nil, false, fail(e.line, "%s is not in %s", short(args[0]), short(x))
	case n == 1 && e.function == "join" && e.method:
		return e.joined(s, args[0], x)
	case n == 0 && e.function == "int":
		x = strings.TrimSpace(x)
		if i, err := strconv.ParseInt(x, 10, 64); err == nil {
			return i, true, nil
		}
		f, err := strconv.ParseFloat(x, 64)
		if err != nil || strings.ContainsAny(x, "xX") { // Python has no hexadecimal floats
			f = 0 // as Jinja2 does
		}
		return e.truncated(f)
	}
	return nil, false, nil
}

// truncated returns f without its fraction; 0 if f is not finite, as in Jinja2.
func (e *call) truncated(f float64) (any, bool, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return int64(0), true, nil
	case math.Abs(f) >= 1<<63:
		return nil, false, fail(e.line, "the number %s is too large", reprFloat(f))
	}
	return int64(f), true, nil
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

// ofAny applies the functions of lists and those of all values.
func (e *call) ofAny(s *scope, x any, args []any, texts []string) (any, bool, error) {
	if !e.method {
		switch {
		case e.function == "string":
			return Text(x), true, nil
		case e.function == "int":
			if n, whole := wholeNumber(x); whole {
				return n, true, nil
			}
			if f, ok := float(x); ok {
				return e.truncated(f)
			}
		case e.function == "join" && len(args) < 2:
			separator := ""
			if len(args) == 1 {
				separator = Text(args[0])
			}
			return e.joined(s, x, separator)
		}
	}
	list, ok := elements(x)
	if !ok {
		return nil, false, nil
	}
	switch {
	case e.function == "length":
		return int64(len(list)), true, nil
	case e.function == "list":
		return list, true, nil
	case (e.function == "first" || e.function == "last") && len(list) == 0:
		return nil, false, fail(e.line, "%s of nothing", e.function)
	case e.function == "first":
		return list[0], true, nil
	case e.function == "last":
		return list[len(list)-1], true, nil
	case e.function == "index" && len(args) == 1:
		at, err := s.index(e.line, list, args[0])
		if err != nil {
			return nil, false, err
		}
		if at < 0 {
			return nil, false, fail(e.line, "%s is not in %s", short(args[0]), short(x))
		}
		return int64(at), true, nil
	}
	return nil, false, nil
}

func (e *call) joined(s *scope, v any, separator string) (any, bool, error) {
	list, ok := elements(v)
	if !ok {
		return nil, false, nil
	}
	parts, size := make([]string, len(list)), 0
	for i, x := range list {
		parts[i] = Text(x)
		if size += len(parts[i]) + len(separator); size > maxText {
			return nil, false, s.tooLong(e.line, size)
		}
	}
	return strings.Join(parts, separator), true, nil
}

func ofMap(function string, m map[string]any, args []any) (any, bool, error) {
	all := []any{}
	switch {
	case function == "get" && (len(args) == 1 || len(args) == 2):
		if k, ok := args[0].(string); ok {
			if v, ok := m[k]; ok {
				return v, true, nil
			}
		}
		if len(args) == 2 {
			return args[1], true, nil
		}
		return nil, true, nil
	case len(args) > 0:
		return nil, false, nil
	case function == "keys":
		return keys(m), true, nil
	case function == "values":
		for _, k := range keys(m) {
			all = append(all, m[k.(string)])
		}
		return all, true, nil
	case function == "items":
		for _, k := range keys(m) {
			all = append(all, []any{k, m[k.(string)]})
		}
		return all, true, nil
	}
	return nil, false, nil
}

func rangeOf(line int, args []any) (any, error) {
	from, to := int64(0), int64(0)
	ok := len(args) == 1 || len(args) == 2
	for _, a := range args {
		n, whole := wholeNumber(a)
		from, to, ok = to, n, ok && whole
	}
	if !ok {
		return nil, fail(line, "range takes one or two whole numbers")
	}
	if to > from && (to > maxItems || from < -maxItems || to-from > maxItems) {
		return nil, fail(line, "a range of more than %d numbers", maxItems)
	}
	all := []any{}
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all, nil
}

// elements returns the elements of a list, the characters of a text, or the keys of a map.
func elements(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case map[string]any:
		return keys(v), true
	case string:
		all := make([]any, 0, len(v))
		for _, r := range v {
			all = append(all, string(r))
		}
		return all, true
	}
	return nil, false
}

func keys(m map[string]any) []any {
	all := make([]any, 0, len(m))
	for _, k := range slices.SortedFunc(maps.Keys(m), cmp.Compare) {
		all = append(all, k)
	}
	return all
}

func listOf(texts []string) []any {
	all := make([]any, len(texts))
	for i, t := range texts {
		all[i] = t
	}
	return all
}

func (s *scope) contains(line int, whole, x any) (any, error) {
	if text, ok := whole.(string); ok {
		part, ok := x.(string)
		if !ok {
			return nil, fail(line, "%s cannot be in a text", short(x))
		}
		return strings.Contains(text, part), nil
	}
	list, ok := elements(whole)
	if !ok {
		return nil, fail(line, "nothing is in %s", short(whole))
	}
	at, err := s.index(line, list, x)
	return at >= 0, err
}

// index returns where an element of a list equals x; −1 if none does.
func (s *scope) index(line int, list []any, x any) (int, error) {
	for i, v := range list {
		if same, err := s.equal(line, v, x); same || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// title gives every word a capital, and small letters after it. The words of Python's str.title are runs of letters;
// the words of the filter title are pieces (inPiece).
func title(s string, inWord func(rune) bool, capital func(string) string) string {
	var b strings.Builder
	inside := false
	for _, r := range s {
		was := inside
		if inside = inWord(r); inside && !was {
			b.WriteString(capital(string(r)))
		} else {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// Lower returns s in lower case as Python does, where Σ ends a word as ς.
func Lower(s string) string { return cases.Lower(language.Und).String(s) }

// Upper returns s in upper case as Python does, which turns ß into SS.
func Upper(s string) string { return cases.Upper(language.Und).String(s) }

func titled(s string) string { return cases.Title(language.Und).String(s) }

// isSpace reports Python's isspace, which includes the separators of files, groups, records and units.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// inPiece reports whether a character belongs to a word of Jinja2's filter title, as it does not separate words.
func inPiece(r rune) bool { return !isSpace(r) && !strings.ContainsRune("-({[<", r) }

// short shortens a value for an error.
func short(v any) string {
	var b strings.Builder
	writeRepr(&b, v, 256)
	s := []rune(b.String())
	if len(s) > 60 {
		return string(s[:59]) + "…"
	}
	return string(s)
}

func words(list []string) string { return strings.Join(list, ", ") }

// fields lists the fields of an item for an error.
func fields(m map[string]any) string {
	var list []string
	for _, k := range keys(m) {
		if len(list) == 20 {
			list = append(list, "…")
			break
		}
		list = append(list, k.(string))
	}
	if list == nil {
		return "none"
	}
	return words(list)
}
