package main

import (
	"time"

	"anneal/bench"
	"anneal/internal/isa"
)

type benchOptimCmd struct {
	threadsFlag
	Seconds inSeconds `default:"0.3" help:"Time for each optimizer."`
}

func (benchOptimCmd) Help() string { return example("anneal bench optim --json") }

func (c benchOptimCmd) Run(s *session) error {
	tier, err := isa.Choose()
	if err != nil {
		return err
	}
	d := time.Duration(float64(c.Seconds) * float64(time.Second))
	report, err := bench.Optimizers(int(c.Threads), d, func(o bench.OptimCase) {
		s.printf("%-22s %6.2f bytes of state   %7.2f ms  %5.2f ns a parameter  %6.1f GB/s  %3.0f%% of bandwidth\n",
			o.Name, o.StateBytesPerParameter, o.StepMs, o.NsPerParameter, o.GBs, 100*o.FractionOfBandwidth)
	})
	if err != nil {
		return err
	}
	report.NewtonSchulz, err = bench.NewtonSchulz(tier, report.Threads, d, func(n bench.NewtonSchulzCase) {
		s.printf("Newton–Schulz %5d×%-5d  %7.1f GFLOP/s  %3.0f%% of peak\n", n.M, n.N, n.GFLOPS, 100*n.FractionOfPeak)
	})
	if err != nil {
		return err
	}
	s.printf("%s, %d threads: memory moves %.1f GB/s\n", report.Tier, report.Threads, report.BandwidthGBs)
	return s.emit(report)
}
