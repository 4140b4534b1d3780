package tasks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"anneal/tasks/jinja"
)

// item is an object of the data with its number in its split, from 0.
type item struct {
	number int
	values map[string]any
}

// problem returns a Problem of the field for an item.
func (f *field) problem(it item, format string, args ...any) *Problem {
	return f.entry.problem("", "%s of item %d: %s", f.key, it.number, fmt.Sprintf(format, args...))
}

// value returns the field's value for an item: the item's field of that name, or else the text of the template.
func (f *field) value(it item) (any, error) {
	if v, ok := it.values[f.source]; ok {
		return v, nil
	}
	s, err := f.template.Render(it.values)
	if err != nil {
		return nil, f.problem(it, "%v", err)
	}
	return s, nil
}

// string returns the value of a field that must be a text; "" if f is nil.
func (f *field) string(it item) (string, error) {
	if f == nil {
		return "", nil
	}
	v, err := f.value(it)
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", f.problem(it, "%s is not a text", clip(jinja.Text(v)))
	}
	return s, nil
}

func isDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
}

// question returns the item's doc_to_text.
func (t *Task) question(it item) (string, error) {
	s, err := t.text.string(it)
	if err == nil && isDigits(s) && t.hasChoices() {
		err = t.text.problem(it, "%s: the number of a choice, one text for each of which is not supported", clip(s))
	}
	return s, err
}

func (t *Task) hasChoices() bool { return t.choice != nil || t.choices != nil }

// wanted returns the item's doc_to_target: a text, a number, or a list of them.
func (t *Task) wanted(it item) (any, error) {
	if t.target == nil {
		return t.constant, nil
	}
	v, err := t.target.value(it)
	s, text := v.(string)
	if _, given := it.values[t.target.source]; err != nil || given || !text {
		return v, err
	}
	switch {
	case t.hasChoices() && isDigits(s):
		if n, err := jinja.Literal(s); err == nil {
			return n, nil
		}
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		if list, err := jinja.Literal(s); err == nil {
			return list, nil
		}
	}
	return s, nil
}

const maxChoices = 1024 // of an item: each is asked after the whole context

// options returns the item's doc_to_choice; nil if the task has none.
func (t *Task) options(it item) ([]string, error) {
	if t.choice == nil {
		return t.choices, nil
	}
	v, err := t.choice.value(it)
	if err != nil {
		return nil, err
	}
	if s, text := v.(string); text {
		if v, err = jinja.Literal(s); err != nil {
			if s == t.choice.source && !strings.ContainsAny(s, " {[") { // it was meant as a name
				return nil, t.choice.problem(it, "items have no field %s; they have %s", clip(s),
					clip(strings.Join(slices.Sorted(maps.Keys(it.values)), ", ")))
			}
			return nil, t.choice.problem(it, "%s is not a list", clip(s))
		}
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, t.choice.problem(it, "%s is not a list of choices", clip(jinja.Text(v)))
	}
	if len(list) > maxChoices {
		return nil, t.choice.problem(it, "there are %d choices, more than %d", len(list), maxChoices)
	}
	texts := make([]string, len(list))
	for i, x := range list {
		if texts[i], ok = x.(string); !ok || texts[i] == "" {
			return nil, t.choice.problem(it, "choice %d is %s, not a text", i, clip(jinja.Text(x)))
		}
	}
	return texts, nil
}

// context returns the text before the answer to an item: the description, the examples with their answers, and the
// question.
func (t *Task) context(it item, examples []item) (string, error) {
	var b strings.Builder
	description, err := t.description.string(it)
	if err != nil {
		return "", err
	}
	b.WriteString(description)
	for _, x := range examples {
		if err := t.example(&b, x); err != nil {
			return "", err
		}
	}
	question, err := t.question(it)
	if err != nil {
		return "", err
	}
	prefix, err := t.prefix.string(it)
	if err != nil {
		return "", err
	}
	b.WriteString(question)
	if prefix != "" && apart(question, prefix) {
		b.WriteString(t.delimiter)
	}
	b.WriteString(prefix)
	return b.String(), nil
}

// apart reports whether there is no white space between two texts.
func apart(a, b string) bool {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	return a != "" && !unicode.IsSpace(last) && !unicode.IsSpace(first)
}

// example writes a question with its answer.
func (t *Task) example(b *strings.Builder, it item) error {
	question, err := t.question(it)
	if err != nil {
		return err
	}
	b.WriteString(question)
	answer, err := t.answer(it)
	if err != nil || answer == "" {
		return err
	}
	prefix, err := t.prefix.string(it)
	if err != nil {
		return err
	}
	if prefix == "" || apart(question, prefix) {
		b.WriteString(t.delimiter)
	}
	b.WriteString(prefix)
	if prefix != "" && apart(prefix, answer) {
		b.WriteString(" ")
	}
	b.WriteString(answer)
	b.WriteString(t.between)
	return nil
}

// answer returns the target as a text: for a number the choice of that number, for a list its first element.
func (t *Task) answer(it item) (string, error) {
	v, err := t.wanted(it)
	if err != nil {
		return "", err
	}
	if n, ok := index(v); ok && t.hasChoices() {
		options, err := t.options(it)
		if err != nil {
			return "", err
		}
		if n < 0 || n >= len(options) {
			return "", t.targetProblem(it, "%d is not one of %d choices", n, len(options))
		}
		return options[n], nil
	}
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	s, ok := v.(string)
	if !ok {
		return "", t.targetProblem(it, "%s is not a text", clip(jinja.Text(v)))
	}
	return s, nil
}

func (t *Task) targetProblem(it item, format string, args ...any) *Problem {
	if t.target == nil {
		return &Problem{At: t.File, Message: "doc_to_target: " + fmt.Sprintf(format, args...)}
	}
	return t.target.problem(it, format, args...)
}

// index returns the number of a choice; as in Python, a bool counts as a number.
func index(v any) (int, bool) {
	switch v := v.(type) {
	case int64:
		return int(v), true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}
