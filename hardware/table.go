package hardware

import "strings"

const (
	tera = 1e12
	giga = 1e9
	gibi = 1 << 30 // makers count memory in these, though they write GB
)

// Share of the peak that attention kernels reach for long rows of heads of 128, by the generation of the accelerator:
// FlashAttention (arXiv 2205.14135), FlashAttention-2 (2307.08691, figures 4 to 7) and those that use the tensor cores
// of their generation (FlashAttention-3, 2407.08608; cuDNN). For TPUs it is the share of their compiler's fused
// kernel.
var (
	volta     = map[string]float64{"flash": 0.30, "flash2": 0.35, "fused": 0.35}
	ampere    = map[string]float64{"flash": 0.36, "flash2": 0.60, "fused": 0.62}
	hopper    = map[string]float64{"flash": 0.22, "flash2": 0.38, "fused": 0.60}
	blackwell = map[string]float64{"flash": 0.12, "flash2": 0.20, "fused": 0.60}
	torus     = map[string]float64{"flash": 0.40, "flash2": 0.40, "fused": 0.40}
	other     = map[string]float64{"flash": 0.25, "flash2": 0.30, "fused": 0.40}
)

// A Known accelerator is an entry of the table: an accelerator and its usual node.
type Known struct {
	Accelerator
	Aliases []string
	PerNode int     // devices of the usual node
	Inside  float64 // B/s one way between the devices of a node or a domain, of each device
	Domain  int     // devices that reach each other at Inside; more than PerNode where domains span nodes
	Outside float64 // B/s one way of each device to the other domains
	Latency [2]float64
}

func gpu(name, aliases string, bf16, product16, fp8, product8, memory, bandwidth float64, cores int,
	attention map[string]float64, inside float64, domain int, outside float64, source string) Known {
	k := Known{
		Accelerator: Accelerator{
			Name: name, Memory: memory * gibi, Bandwidth: bandwidth * giga, Cores: cores, Tile: 128,
			Launch: 4e-6, Attention: attention, Source: source,
			Peak:    map[Precision]float64{BF16: bf16 * tera, FP16: bf16 * tera, FP8: fp8 * tera},
			Product: map[Precision]float64{BF16: product16 * tera, FP16: product16 * tera, FP8: product8 * tera},
		},
		Aliases: strings.Fields(aliases), PerNode: 8, Inside: inside * giga, Domain: domain, Outside: outside * giga,
		Latency: [2]float64{4e-6, 12e-6},
	}
	return k
}

// tpu is a chip of a slice: links of its torus inside, the network of the data centre outside.
func tpu(name, aliases string, bf16, fp8, memory, bandwidth float64, tile int, inside float64, domain int,
	outside float64, source string) Known {
	k := gpu(name, aliases, bf16, 0, fp8, 0, memory, bandwidth, 0, torus, inside, domain, outside, source)
	k.Tile, k.PerNode, k.Launch, k.Latency = tile, 4, 1e-6, [2]float64{1e-6, 20e-6}
	return k
}

const (
	vendors = "the maker's data sheet; fastest products: stas00/ml-engineering@744d01e1"
	google  = "jax-ml/scaling-book@0819a7d; stas00/ml-engineering@744d01e1"
)

// Table lists the accelerators that have a name. Rates are the makers' figures for dense products; beside them is the
// measured rate of the fastest product, if somebody searched for it.
var Table = []Known{
	volta100("v100-16gb", 16), volta100("v100-32gb", 32),
	gpu("a100-40gb", "a100-sxm-40gb a100-sxm4-40gb", 312, 271.2, 0, 0, 40, 1555, 108, ampere, 300, 8, 25, vendors),
	gpu("a100-80gb", "a100 a100-sxm-80gb a100-sxm4-80gb", 312, 271.2, 0, 0, 80, 2039, 108,
		ampere, 300, 8, 25, vendors),
	gpu("a100-pcie-80gb", "", 312, 252.9, 0, 0, 80, 1935, 108, ampere, 25, 8, 12.5, vendors),
	gpu("h100-80gb", "h100 h100-sxm h100-sxm-80gb h100-sxm5-80gb", 989.4, 794.5, 1978.9,
		1402.6, 80, 3350, 132, hopper, 450, 8, 50,
		vendors),
	gpu("h100-96gb-500w", "h100-96gb", 989.4, 794.5, 1978.9, 1402.6, 96, 2400, 132, hopper, 450, 8, 50,
		"pytorch/torchtitan@b5bcd76c: parts with HBM2e, limited to 500 W; peaks of the 700 W part"),
	gpu("h100-pcie-80gb", "h100-pcie", 756, 0, 1513, 0, 80, 2000, 114, hopper, 55, 8, 25, vendors),
	gpu("h800-80gb", "h800", 989.4, 794.5, 1978.9, 1402.6, 80, 3350, 132, hopper, 200, 8, 50, vendors),
	gpu("h20-96gb", "h20", 148, 0, 296, 0, 96, 4000, 78, hopper, 450, 8, 50, vendors),
	gpu("h200-141gb", "h200 h200-sxm", 989.4, 794.5, 1978.9, 1453.4, 141, 4800, 132, hopper, 450, 8, 50, vendors),
	fp4(gpu("b200-180gb", "b200 b200-sxm b200-192gb", 2250, 1745, 4500, 3432.5, 180, 8000,
		148, blackwell, 900, 8, 50, vendors), 9000),
	fp4(gpu("b300-288gb", "b300 b300-sxm", 2250, 1769, 4500, 3353.3, 288, 8000, 148,
		blackwell, 900, 8, 100, vendors), 13500),
	domain72(fp4(gpu("gb200-186gb", "gb200", 2500, 1822, 5000, 3615.6, 186, 8000, 148,
		blackwell, 900, 72, 50, vendors), 10000)),
	domain72(fp4(gpu("gb300-288gb", "gb300", 2500, 1822, 5000, 3615.6, 288, 8000, 148,
		blackwell, 900, 72, 100, vendors), 15000)),
	gpu("mi250x-128gb", "mi250x", 383, 0, 0, 0, 128, 3280, 220, other, 150, 8, 25, vendors),
	gpu("mi300x-192gb", "mi300x", 1307, 668.4, 2614, 0, 192, 5300, 304, other, 448, 8, 50, vendors),
	gpu("mi325x-256gb", "mi325x", 1307, 784.9, 2614, 0, 256, 6000, 304, other, 448, 8, 50, vendors),
	gpu("mi355x-288gb", "mi355x", 2500, 1565, 5000, 0, 288, 8000, 256, other, 535, 8, 50, vendors),
	tpu("tpu-v4", "tpuv4 v4", 275, 0, 32, 1200, 128, 270, 4096, 6.25, google),
	tpu("tpu-v5e", "tpuv5e v5e", 197, 0, 16, 810, 128, 180, 256, 6.25, google),
	tpu("tpu-v5p", "tpuv5p v5p", 459, 0, 95, 2765, 128, 540, 8960, 6.25, google),
	tpu("tpu-v6e", "tpuv6e v6e trillium", 918, 0, 32, 1600, 256, 360, 256, 6.25, google),
	tpu("tpu-v7x", "tpuv7x v7x ironwood", 2307, 4614, 192, 7400, 256, 600, 9216, 12.5, google),
}

func volta100(name string, memory float64) Known {
	k := gpu(name, "", 125, 0, 0, 0, memory, 900, 80, volta, 150, 8, 12.5, vendors)
	delete(k.Peak, BF16)
	if memory == 32 {
		k.Aliases = []string{"v100"}
	}
	return k
}

func fp4(k Known, peak float64) Known {
	k.Peak[FP4] = peak * tera
	return k
}

func domain72(k Known) Known {
	k.PerNode = 4
	return k
}
