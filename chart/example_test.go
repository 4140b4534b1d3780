package chart_test

import (
	"bytes"
	"fmt"
	"os"

	"anneal/chart"
)

// A chart is drawn twice: as SVG, and in characters for a terminal.
func Example() {
	c := chart.Chart{
		Title: "training",
		X:     chart.Axis{Label: "step"},
		Y:     chart.Axis{Label: "loss (nats per token)"},
		Series: []chart.Series{
			{Name: "loss", X: []float64{1, 2, 3, 4}, Y: []float64{4, 2.5, 2, 1.9}},
		},
	}
	var svg bytes.Buffer
	if err := c.SVG(&svg); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bytes.HasPrefix(svg.Bytes(), []byte("<svg")))
	if err := c.Terminal(os.Stdout, 40, 10); err != nil {
		fmt.Println(err)
	}
	// Output:
	// true
	//                 training
	// loss (nats per token)
	// 4 ┤⠒⠤⣀
	//   │   ⠉⠒⠤⡀
	//   │      ⠈⠑⠢⢄⡀
	//   │          ⠈⠑⠒⠤⠤⠤⣀⣀⡀
	// 2 ┤                  ⠉⠉⠉⠒⠒⠒⠢⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤
	//   └┬───────────┬──────────┬───────────┬
	//    1           2          3           4
	//                    step
	//    ⠒⠒⠒ loss
}
