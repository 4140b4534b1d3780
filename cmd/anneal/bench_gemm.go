package main

import (
	"fmt"
	"runtime"
	"time"

	"anneal/device/cpu/isa"
	"anneal/lab"
)

type benchGemmCmd struct {
	Threads []int  `placeholder:"N,…" help:"Numbers of threads to measure; none takes one and all."`
	Seconds amount `default:"0.2" help:"Time for each product."`
}

func (benchGemmCmd) Help() string { return example("anneal bench gemm --threads 1,2") }

func (c benchGemmCmd) Run(s *session) error {
	tier, err := isa.Choose()
	if err != nil {
		return err
	}
	for _, n := range c.Threads {
		if n < 1 {
			return &usageError{fmt.Sprintf("--threads %d is not a number from 1 up", n), "try --threads 1,2"}
		}
	}
	if c.Threads == nil {
		c.Threads = []int{1, runtime.GOMAXPROCS(0)}
	}
	report, err := lab.BenchGEMM(tier, c.Threads, time.Duration(float64(c.Seconds)*float64(time.Second)), func(r lab.GEMMCase) {
		s.printf("%-4s %d threads  %-14s %s  %5d×%5d×%5d  %7.1f GFLOP/s  %3.0f%% of peak\n",
			r.DType, r.Threads, r.Name, r.Form, r.M, r.N, r.K, r.GFLOPS, 100*r.FractionOfPeak)
	})
	if err != nil {
		return err
	}
	s.printf("%s: peak %.0f GFLOP/s BF16, %.0f GFLOP/s FP32 with all threads\n", tier, report.Peak.BF16, report.Peak.FP32)
	return s.emit(report)
}
