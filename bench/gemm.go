package bench

import (
	"time"

	"anneal/device/cpu/gemm"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/tensor"
)

// PeakGFLOPS is the throughput of the best multiply-add instructions on registers alone.
type PeakGFLOPS struct {
	BF16 float64 `json:"bf16"`
	FP32 float64 `json:"fp32"`
}

// GEMMCase is the measurement of one matrix product.
type GEMMCase struct {
	Name           string  `json:"name"`
	Form           string  `json:"form"` // nn, nt or tn
	M              int     `json:"m"`
	N              int     `json:"n"`
	K              int     `json:"k"`
	DType          string  `json:"dtype"` // bf16 or fp32
	Threads        int     `json:"threads"`
	GFLOPS         float64 `json:"gflops"`
	FractionOfPeak float64 `json:"fraction_of_peak"` // of the peak with as many threads, measured just before
}

// GEMMReport compares the products of training with the peak of the machine.
type GEMMReport struct {
	Tier    string     `json:"tier"`
	Threads int        `json:"threads"`
	Peak    PeakGFLOPS `json:"peak_gflops"` // with the largest number of threads; the highest of all measurements
	Cases   []GEMMCase `json:"cases"`
}

// MeasurePeak measures the peak of a tier with a number of threads; 0 means all.
func MeasurePeak(tier isa.Tier, threads int) PeakGFLOPS {
	p := pool.New(threads)
	defer p.Close()
	return peakOf(tier, p)
}

func peakOf(tier isa.Tier, p *pool.Pool) PeakGFLOPS {
	const d = 200 * time.Millisecond
	return PeakGFLOPS{BF16: gemm.Peak(tier, tensor.BF16, p, d), FP32: gemm.Peak(tier, tensor.F32, p, d)}
}

// GEMM measures the products of gemm.Cases in BF16 and FP32 for each number of threads, each for the time d, and
// calls each with every result. The peak is measured anew before each product, because the clock varies.
func GEMM(tier isa.Tier, threads []int, d time.Duration, each func(GEMMCase)) (*GEMMReport, error) {
	r := &GEMMReport{Tier: tier.String()}
	for _, n := range threads {
		if err := r.measure(tier, n, d, each); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *GEMMReport) measure(tier isa.Tier, threads int, d time.Duration, each func(GEMMCase)) error {
	p := pool.New(threads)
	defer p.Close()
	e := gemm.New(tier, p)
	defer e.Close()
	if p.Threads() >= r.Threads {
		r.Threads, r.Peak = p.Threads(), PeakGFLOPS{}
	}
	for _, o := range []struct {
		name  string
		dtype tensor.DType
		best  *float64
	}{{"bf16", tensor.BF16, &r.Peak.BF16}, {"fp32", tensor.F32, &r.Peak.FP32}} {
		for _, c := range gemm.Cases() {
			peak := gemm.Peak(tier, o.dtype, p, d/4)
			if p.Threads() == r.Threads {
				*o.best = max(*o.best, peak)
			}
			rate, err := e.Measure(c, o.dtype, d)
			if err != nil {
				return err
			}
			g := GEMMCase{c.Name, c.Form.String(), c.M, c.N, c.K, o.name, p.Threads(), rate, rate / peak}
			r.Cases = append(r.Cases, g)
			each(g)
		}
	}
	return nil
}
