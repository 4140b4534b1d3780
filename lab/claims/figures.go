package claims

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Figure is one measured number.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// String returns the figure for display: "state in bf16: 16 B/parameter".
func (f Figure) String() string { return f.Name + ": " + f.Amount() }

// Amount returns the value with its unit, in four digits.
func (f Figure) Amount() string {
	text := digits(f.Value)
	if f.Unit != "" {
		text += " " + f.Unit
	}
	return text
}

// digits writes a number in four significant digits, or all digits of a whole number below ten million.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1e7:
		return separated(strconv.FormatInt(int64(v), 10))
	case a >= 1e7 || a < 1e-3:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case a >= 1000:
		return separated(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// separated puts commas between groups of three digits.
func separated(text string) string {
	sign := strings.HasPrefix(text, "-")
	text = strings.TrimPrefix(text, "-")
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if sign {
		return "-" + text
	}
	return text
}

// Figures are the measurements of a claim, by name.
type Figures struct {
	list    []Figure
	missing []string
}

// Of returns the value of a figure. A missing figure is recorded; then there is no verdict.
func (f *Figures) Of(name string) float64 {
	i := slices.IndexFunc(f.list, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		f.missing = append(f.missing, name)
		return math.NaN()
	}
	return f.list[i].Value
}

// Text returns a figure's value with its unit, for a sentence.
func (f *Figures) Text(name string) string {
	value := f.Of(name)
	for _, g := range f.list {
		if g.Name == name {
			return g.Amount()
		}
	}
	return digits(value)
}

// A MissingError means that the stored figures of a claim lack some that its rule needs.
type MissingError struct {
	Claim int
	Names []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the figures of claim %d are from another version: %q is missing\n  measure in another --out",
		e.Claim, e.Names[0])
}

// Verdict applies the claim's rule.
func (c Claim) Verdict(list []Figure) (Verdict, error) {
	f := &Figures{list: list}
	v := c.Judge(f)
	if len(f.missing) > 0 {
		return Verdict{}, &MissingError{c.Number, f.missing}
	}
	return v, nil
}

// check returns an error if a figure is not a number.
func check(list []Figure) error {
	for _, f := range list {
		if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			return fmt.Errorf("%q is %v", f.Name, f.Value)
		}
	}
	return nil
}
