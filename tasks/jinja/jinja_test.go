package jinja

import (
	"errors"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

var item = map[string]any{
	"q": "  What is\nit? ", "a": "Yes", "n": int64(7), "f": 0.5, "ok": true, "no": nil,
	"list": []any{"x", "it's", int64(3)},
	"m":    map[string]any{"text": []any{"u", "v"}, "label": []any{"A", "B"}}, "Ä": "ä",
}

// The results of the last column are those of jinja2 3.1 with lm_eval's environment: testdata/jinja.py prints them.
func TestRendersAsJinja2Does(t *testing.T) {
	for _, c := range golden(t) {
		tmpl, err := Parse(c.Template)
		if err != nil {
			t.Errorf("%q: %v", c.Template, err)
			continue
		}
		got, err := tmpl.Render(item)
		if err != nil || got != c.Text {
			t.Errorf("%q: got %q, %v, want %q", c.Template, got, err, c.Text)
		}
	}
}

// A comma makes a tuple of one, and words end as Greek ones do.
func TestTuplesOfOneAndFinalLetters(t *testing.T) {
	for template, want := range map[string]string{
		`{{ 'a' in ('abc',) }}`: "False", `{{ 'a' in ('abc') }}`: "True",
		`{% for w in ('ab',) %}<{{ w }}>{% endfor %}`: "<ab>", `{{ ('ab') }}`: "ab", `{{ 'ας οδος'.capitalize() }}`: "Ας οδος",
		`{{ 'ΑΣ ΟΔΟΣ'.capitalize() }}`: "Ας οδος",
	} {
		tmpl, err := Parse(template)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Render(item); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", template, got, err, want)
		}
	}
}

func TestWhatIsNotSupportedIsNamedWithItsLine(t *testing.T) {
	for template, want := range map[string]string{
		"a\n{{ x }}":                   "line 2 of the template: x is not a field of the item: it has",
		"{{ q|escape }}":               "filter \"escape\" is not supported",
		"{{ q.encode() }}":             "method \"encode\" is not supported",
		"{% macro f() %}":              "macro %} is not supported",
		"{{ q":                         "{{ without its end",
		"{% if ok %}a":                 "without {% endif %}",
		"{% endif %}":                  "without its beginning",
		"{{ q + 1 }}":                  "means nothing",
		"{{ list[9] }}":                "element 9 is not among the 3",
		"{{ m.nothing }}":              "is not a field: there are label, text",
		"{{ 1 // 0 }}":                 "a division by 0",
		"{{ n n }}":                    "\"n\" is not expected here",
		"{{ 'a }}":                     "without its end",
		"{{ f() }}":                    "only methods and range",
		"{% for i in n %}{% endfor %}": "is not iterable",
		"{{ ~ }}":                      "\"~\" is not expected here",
		"{{ \\ }}":                     "means nothing here",
		"{{ a|default(1, 2, 3) }}":     "default with 3 arguments means nothing",
		"{{ '1e30'|int }}":             "the number 1e+30 is too large",

		"{{ 9223372036854775807 + 1 }}":          "more than 64 bits",
		"{{ -9223372036854775807 - 2 }}":         "more than 64 bits",
		"{{ 4611686018427387904 * 4 }}":          "more than 64 bits",
		"{{ -(-9223372036854775807 - 1) }}":      "more than 64 bits",
		"{{ (-9223372036854775807 - 1) // -1 }}": "more than 64 bits",
		"{{ (-9223372036854775807 - 1) * -1 }}":  "more than 64 bits",

		"{% for i in list if %}{% endfor %}":            "an expression is missing",
		"{% for i in list if ok else m %}{% endfor %}":  "\"else\" is not expected here",
		"{% for i in list if i.x %}{% endfor %}":        "has no element 'x'",
		"{% for i in list if loop.last %}{% endfor %}!": "loop is not a field",
	} {
		tmpl, err := Parse(template)
		if err == nil {
			_, err = tmpl.Render(item)
		}
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", template, err, want)
		}
	}
}

// What would take forever, or all memory, is an error.
func TestRenderingIsBounded(t *testing.T) {
	double := strings.Repeat("{% set x = x ~ x %}", 60)
	lists := strings.Repeat("{% set x = [x, x] %}", 60)
	for _, template := range []string{
		"{% set x = 'aaaaaaaa' %}" + double + "{{ x }}",
		"{% set x = 1 %}" + lists + "{{ x }}",
		"{% for i in range(60000) %}{% for j in range(60000) %}{% endfor %}{% endfor %}",
		"{% set x = 'aaaaaaaa'.replace('a', 'aaaaaaaaaaaaaaaaaaaa') %}" +
			strings.Repeat("{% set x = x.replace('a', x) %}", 9),
		strings.Repeat("{% if ok %}", 100) + strings.Repeat("{% endif %}", 100),
		"{{ " + strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100) + " }}",
		"{{ " + strings.Repeat("-", 100) + "1 }}", "{{ " + strings.Repeat("not ", 100) + "1 }}",
		strings.Repeat("a", maxTemplate+1),
		// comparing, and errors that are caught, are work, too
		"{% set x = 'aaaaaaaa' %}" + double[:14*len("{% set x = x ~ x %}")] +
			"{% set y = x ~ 'a' %}{% set z = x ~ 'b' %}" +
			"{% for i in range(10) %}{% if z in [" + strings.Repeat("y, ", 16) + "] %}{% endif %}{% endfor %}",
		"{% set x = range(60000) %}{% set l = [x, x, x, x, x, x, x, x] %}" +
			"{% for i in range(200) %}{% if l == [x, x, x, x, x, x, x, x] %}{% endif %}{% endfor %}",
		"{% set x = range(60000) %}{% set l = [x, x, x, x, x, x, x, x, x, x, x, x, x, x] %}" +
			"{% for i in range(300) %}{{ (l ~ l)|default('') }}{% endfor %}",
	} {
		tmpl, err := Parse(template)
		if err == nil {
			var text string
			if text, err = tmpl.Render(item); err == nil && len(text) <= maxText+16 {
				t.Errorf("%.80q renders %d bytes", template, len(text))
			}
		}
	}
	nested := "{% set x = 1 %}" + lists + "{% set y = 1 %}" + strings.ReplaceAll(lists, "x", "y") + "{{ x == y }}"
	tmpl, err := Parse(nested)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := tmpl.Render(nil); err == nil && text != "False" {
		t.Errorf("lists of 2^60 elements: %q", text)
	}
}

// An error has the beginning of a value, however large that is.
func TestErrorsShowTheBeginningOfAValue(t *testing.T) {
	big := []any{strings.Repeat("☃", 1<<20), "b"}
	if got, want := short(big), "['"+strings.Repeat("☃", 57)+"…"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if n := filetest.AllocsPerRun(1, func() { short(big) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

func TestLiteralReadsWhatReprWrites(t *testing.T) {
	for _, v := range []any{
		nil, true, int64(-3), 0.5, 1e20, -1e-7, "it's", `both " and '`, "a\\n\n\t\x01é☃", []any{},
		[]any{"a", []any{int64(1)}},
	} {
		got, err := Literal(repr(v))
		if err != nil || !Equal(got, v) {
			t.Errorf("%s: got %v, %v", repr(v), got, err)
		}
	}
	for _, text := range []string{"", "a", "[a]", "1 + 1", "[1", "f()", "['a'] x", strings.Repeat("[", 100)} {
		if v, err := Literal(text); err == nil {
			t.Errorf("%q is %v", text, v)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, c := range golden(f) {
		f.Add(c.Template)
	}
	f.Fuzz(func(t *testing.T, template string) {
		tmpl, err := Parse(template)
		if err != nil {
			return
		}
		text, err := tmpl.Render(item)
		if err == nil && len(text) > maxText {
			t.Errorf("%d bytes", len(text))
		}
		if v, err := Literal(text); err == nil {
			if w, err := Literal(repr(v)); err != nil && len(repr(v)) <= maxText {
				t.Errorf("%q: %v of %q: %v", text, w, repr(v), err)
			}
		}
	})
}
