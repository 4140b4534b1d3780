package curate

import (
	"anneal/internal/units"
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent": func(a, b any) string { return fmt.Sprintf("%.2f", 100*share(a, b)) },
	"bytes":   humanBytes,
	"count":   func(n int) string { return units.Commas(n) },
	"value":   func(v float64) string { return fmt.Sprintf("%.4g", v) },
	"demand": func(r RuleReport) string {
		switch {
		case r.Min != nil && r.Max != nil:
			return fmt.Sprintf("%.6g … %.6g", *r.Min, *r.Max)
		case r.Min != nil:
			return fmt.Sprintf("≥ %.6g", *r.Min)
		case r.Max != nil:
			return fmt.Sprintf("≤ %.6g", *r.Max)
		}
		if r.Documents > 0 { // a comparison, or a list
			return ""
		}
		return "measured only"
	},
}).Parse(pageText))

// HTML returns the report as a self-contained page.
func (r *Report) HTML() ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, r)
	return b.Bytes(), err
}

func share(a, b any) float64 {
	x, y := number(a), number(b)
	if y == 0 {
		return 0
	}
	return x / y
}

func number(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	}
	return 0
}

func humanBytes(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"kB", "MB", "GB", "TB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
