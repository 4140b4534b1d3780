package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"anneal/bench"
	"anneal/device/cuda"
	"anneal/internal/isa"
	"anneal/internal/units"
)

type benchGemmCmd struct {
	deviceFlag
	Threads []int     `placeholder:"N" help:"Numbers of threads to measure. Default: one, and all."`
	Seconds inSeconds `default:"0.2" help:"Time for each product."`
}

func (benchGemmCmd) Help() string { return example("anneal bench gemm --threads 1,2") }

func (c benchGemmCmd) Run(s *session) error {
	if c.Device == "cuda" {
		return c.onCard(s)
	}
	tier, err := isa.Choose()
	if err != nil {
		return err
	}
	for _, n := range c.Threads {
		if n < 1 {
			return &usageError{fmt.Sprintf("--threads %d is not at least 1", n), "try --threads 1,2"}
		}
	}
	all := runtime.GOMAXPROCS(0)
	threads := []int{1, all}
	if c.Threads != nil {
		threads = c.Threads
	}
	for i, n := range threads {
		threads[i] = min(n, all)
	}
	report, err := bench.GEMM(tier, slices.Compact(threads), time.Duration(float64(c.Seconds)*float64(time.Second)),
		func(r bench.GEMMCase) {
			s.printf("%-4s %-9s  %-14s %s  %5d×%5d×%5d  %7.1f GFLOP/s  %3.0f%% of peak\n",
				r.DType, units.Count(r.Threads, "thread"), r.Name, r.Form, r.M, r.N, r.K, r.GFLOPS,
				100*r.FractionOfPeak)
		})
	if err != nil {
		return err
	}
	s.printf("%s: peak %s BF16, %s FP32 with all threads\n",
		tier, units.Rate(report.Peak.BF16), units.Rate(report.Peak.FP32))
	return s.emit(report)
}

// onCard measures products of sizes that suit a GPU.
func (c benchGemmCmd) onCard(s *session) error {
	dev, err := cuda.Open(0)
	if err != nil {
		return err
	}
	defer dev.Close()
	report, err := bench.CardGEMM(dev, nil, time.Duration(float64(c.Seconds)*float64(time.Second)),
		func(r bench.GEMMCase) {
			s.printf("%-4s  %-12s %s  %5d×%5d×%5d  %8.1f TFLOP/s  %3.0f%% of peak\n",
				r.DType, r.Name, r.Form, r.M, r.N, r.K, r.GFLOPS/1e3, 100*r.FractionOfPeak)
		})
	if err != nil {
		return err
	}
	s.printf("%s: peak %.0f TFLOP/s BF16, %.0f TFLOP/s FP32\n", dev.Name(), report.Peak.BF16/1e3, report.Peak.FP32/1e3)
	return s.emit(report)
}
