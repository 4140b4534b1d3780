package lab

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/internal/fileio"
	"anneal/internal/units"
	"anneal/run"
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
	"size":  units.FormatBytes,
	"speed": func(x float64) string {
		if math.IsNaN(x) || x == 0 { // a run of an earlier command
			return "–"
		}
		return units.Commas(int64(x))
	},
}).Parse(ablationPage))

// equalInWords describes AblateOptions.Equal on the page.
var equalInWords = map[string]string{
	EqualTokens:  "All variants are trained on as many tokens, but for those that set their own.",
	EqualCompute: "All variants have as many operations, but for those that set their own steps.",
	EqualTime: "All variants have as much time, at speeds that were measured on this machine before: another machine " +
		"has other figures.",
	EqualMemory: "All variants have the largest micro-batch for the bytes that the first is planned to take.",
}

// WriteAblation writes a self-contained page: the verdicts, the intervals, the curves, every run, the configurations,
// and the command that reproduces it. It returns runs of an earlier ablation that only the page before listed.
func WriteAblation(path string, o AblateOptions, list []Ablated, curves *chart.Chart, again string) (
	dropped []string, err error) {
	var pictures []template.HTML
	for _, c := range []*chart.Chart{changeChart(list), curves} {
		var picture strings.Builder
		if c == nil {
			continue
		}
		if err := c.SVG(&picture); err != nil {
			return nil, err
		}
		pictures = append(pictures, template.HTML(picture.String()))
	}
	type variant struct {
		*Ablated
		Differences []config.Difference
	}
	var variants []variant
	for i := range list {
		variants = append(variants, variant{&list[i], list[i].Config.Differences(list[0].Config)})
	}
	dropped = droppedFrom(path, o.Out, list)
	return dropped, fileio.Write(path, func(w io.Writer) error {
		return ablationTemplate.Execute(w, map[string]any{
			"Variants": variants, "Pictures": pictures, "Again": again,
			"Config": string(list[0].Config.YAML()), "Equal": equalInWords[o.Equal], "Seeds": o.Seeds,
			"Tune": o.Tune, "Cost": CostOfSearch(list), "Context": o.Context,
			"EqualMemory": o.Equal == EqualMemory,
		})
	})
}

// droppedFrom returns the runs below out that the page at path lists and that are not among the runs of list.
func droppedFrom(path, out string, list []Ablated) (dropped []string) {
	before, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	found, _ := run.FindRuns(out, func(error) {})
	for _, dir := range found {
		is := func(r Compared) bool { return filepath.Clean(r.Run) == dir }
		again := slices.ContainsFunc(list, func(v Ablated) bool { return slices.ContainsFunc(v.Runs, is) })
		if !again && bytes.Contains(before, []byte(filepath.Base(dir)+"</td>")) {
			dropped = append(dropped, dir)
		}
	}
	return dropped
}
