package lab

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/internal/fileio"
)

//go:embed ablatereport.html
var ablationPage string

var ablationTemplate = template.Must(template.New("ablation").Funcs(template.FuncMap{
	"bits": func(x float64) string {
		if math.IsNaN(x) {
			return "–"
		}
		return fmt.Sprintf("%.4f", x)
	},
	"percent": func(x float64) string {
		if math.IsNaN(x) {
			return "–"
		}
		return fmt.Sprintf("%+.2f %%", 100*x)
	},
	"share": func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
}).Parse(ablationPage))

// equalInWords describes AblateOptions.Equal on the page.
var equalInWords = map[string]string{
	EqualTokens:  "All variants are trained on as many tokens, but for those that set their own.",
	EqualCompute: "All variants have as many operations, but for those that set their own steps.",
	EqualTime: "All variants have as much time, at speeds that were measured on this machine before: another machine " +
		"has other figures.",
	EqualMemory: "All variants have the largest micro-batch for the bytes that the first is planned to take.",
}

// WriteAblation writes a self-contained page: the verdicts, the curves, every run, the configurations, and the command
// that reproduces it.
func WriteAblation(path string, o AblateOptions, list []Ablated, curves *chart.Chart, again string) error {
	var picture strings.Builder
	if err := curves.SVG(&picture); err != nil {
		return err
	}
	type variant struct {
		*Ablated
		Differences []config.Difference
	}
	var variants []variant
	for i := range list {
		variants = append(variants, variant{&list[i], list[i].Config.Differences(list[0].Config)})
	}
	return fileio.Write(path, func(w io.Writer) error {
		return ablationTemplate.Execute(w, map[string]any{
			"Variants": variants, "Curves": template.HTML(picture.String()), "Again": again,
			"Config": string(list[0].Config.YAML()), "Equal": equalInWords[o.Equal], "Seeds": o.Seeds,
			"Tune": o.Tune, "Cost": CostOfSearch(list), "Context": o.Context,
		})
	})
}
