package hardware

import "fmt"

// A Precision is the format of the operands of matrix products.
type Precision string

// The precisions.
const (
	FP16 Precision = "fp16"
	BF16 Precision = "bf16"
	FP8  Precision = "fp8"
	FP4  Precision = "fp4"
)

// Precisions lists all precisions.
var Precisions = []Precision{BF16, FP16, FP8, FP4}

// An Accelerator is one device. Rates are per second.
type Accelerator struct {
	Name      string                `yaml:"name" json:"name"`
	Peak      map[Precision]float64 `yaml:"-" json:"peak_flops"` // dense, of matrix products
	Product   map[Precision]float64 `yaml:"-" json:"-"`          // the fastest product measured, FLOP/s; 0: unknown
	Memory    float64               `yaml:"-" json:"memory_bytes"`
	Bandwidth float64               `yaml:"-" json:"memory_bytes_per_second"`
	Cores     int                   `yaml:"-" json:"cores"`           // each computes one tile of a product at a time
	Tile      int                   `yaml:"-" json:"tile"`            // products are padded to multiples of the tile
	Launch    float64               `yaml:"-" json:"launch_seconds"`  // between two kernels
	Attention map[string]float64    `yaml:"-" json:"attention_share"` // share of Peak, by attention kernel

	Fitted Efficiency `yaml:"-" json:"efficiency"`
	Source string     `yaml:"-" json:"source"`
}

// Efficiency holds the shares of the figures above that a training step reaches: three constants for each kind of
// accelerator, fitted to published runs.
type Efficiency struct {
	Compute float64 `json:"compute"` // share of the fastest product
	Memory  float64 `json:"memory"`  // share of the bandwidth of memory
	Network float64 `json:"network"` // share of the rates of links
}

// typicalProduct is the share of the peak that the fastest product is assumed to reach on accelerators without a
// measurement: about the middle of the measured ones (A100 87 %, H100 80 %, B200 78 %, MI300X 51 %).
const typicalProduct = 0.8

// BestProduct returns the FLOP/s of the fastest product in a precision. A precision that the accelerator lacks is
// computed in BF16 or, if that is absent too, in FP16.
func (a *Accelerator) BestProduct(p Precision) float64 {
	p = a.Computes(p)
	if best := a.Product[p]; best > 0 {
		return best
	}
	return typicalProduct * a.Peak[p]
}

// Computes returns the precision in which the accelerator computes products of p.
func (a *Accelerator) Computes(p Precision) Precision {
	for _, try := range []Precision{p, BF16, FP16} {
		if a.Peak[try] > 0 {
			return try
		}
	}
	return p
}

// Describe returns the name with the most important figures for products in p.
func (a *Accelerator) Describe(p Precision) string {
	p = a.Computes(p)
	return fmt.Sprintf("%s (%.0f TFLOP/s in %s, %.0f GB at %.0f GB/s)", a.Name, a.Peak[p]/1e12, p, a.Memory/gibi,
		a.Bandwidth/1e9)
}
