package main

import (
	"context"
	"runtime"
	"time"

	"anneal/corpus"
	"anneal/device/cpu/isa"
	"anneal/lab"
	"anneal/tokenizer"
	"anneal/train"
)

type benchCmd struct {
	Gemm      benchGemmCmd      `cmd:"" help:"Matrix products of training against the measured peak."`
	Step      benchStepCmd      `cmd:"" help:"Whole training steps on random tokens."`
	Tokenizer benchTokenizerCmd `cmd:"" help:"Learning a vocabulary and encoding with it."`
}

type benchGemmCmd struct {
	Threads []int   `placeholder:"N,…" help:"Numbers of threads to measure; none takes one and all."`
	Seconds float64 `default:"0.2" help:"Time for each product."`
}

func (benchGemmCmd) Help() string { return example("anneal bench gemm --threads 1,2") }

func (c benchGemmCmd) Run(s *session) error {
	tier, err := isa.Choose()
	if err != nil {
		return &usageError{err.Error(), "try `unset ANNEAL_CPU`"}
	}
	if c.Threads == nil {
		c.Threads = []int{1, runtime.GOMAXPROCS(0)}
	}
	report, err := lab.BenchGEMM(tier, c.Threads, time.Duration(c.Seconds*float64(time.Second)), func(r lab.GEMMCase) {
		s.printf("%-4s %d threads  %-14s %s  %5d×%5d×%5d  %7.1f GFLOP/s  %3.0f%% of peak\n",
			r.DType, r.Threads, r.Name, r.Form, r.M, r.N, r.K, r.GFLOPS, 100*r.FractionOfPeak)
	})
	if err != nil {
		return err
	}
	s.printf("%s: peak %.0f GFLOP/s BF16, %.0f GFLOP/s FP32 with all threads\n", tier, report.Peak.BF16, report.Peak.FP32)
	return s.emit(report)
}

type benchStepCmd struct {
	Shape     string  `default:"tiny" enum:"demo,tiny,llama-98m" help:"Model: ${enum}."`
	Precision string  `default:"bf16" enum:"bf16,fp32,fp64" help:"One of ${enum}."`
	Threads   int     `help:"Worker threads; 0 takes all."`
	Seconds   float64 `default:"10" help:"How long to measure, after the first step."`
	Batch     int     `help:"Sequences in a step; 0 takes the shape's own."`
	Context   int     `help:"Tokens in a sequence; 0 takes the shape's own."`
}

func (benchStepCmd) Help() string {
	return example("anneal bench step --shape llama-98m --precision bf16 --threads 2 --json")
}

func (c benchStepCmd) Run(s *session) error {
	return s.untilSignal(func(ctx context.Context) error {
		r, err := train.BenchStep(ctx, train.BenchOptions{
			Shape: c.Shape, Precision: c.Precision, Threads: c.Threads, Seconds: c.Seconds, Batch: c.Batch, Context: c.Context,
		})
		if err != nil {
			return err
		}
		s.printf("%s %s, %s, %d threads: %s tok/s, median step %.1f ms, first step after %.2f s\n",
			c.Shape, c.Precision, r.Tier, r.Threads, thousands(int64(r.TokensPerSecond)), r.StepMsMedian, r.FirstStepSeconds)
		s.printf("%.1f of %.1f GFLOP/s, %.0f%% of peak; peak memory %s\n", r.GFLOPS, r.PeakGFLOPS, 100*r.FractionOfPeak, mebibytes(r.PeakRSSBytes))
		return s.emit(r)
	})
}

type benchTokenizerCmd struct {
	Paths   []string `arg:"" optional:"" name:"files-or-dirs" help:"Text; none takes the Go source on this machine."`
	Vocab   int      `default:"32768" help:"Tokens of the vocabulary to learn."`
	MB      int      `name:"mb" default:"100" help:"Text to read, in MB."`
	Pattern string   `default:"llama3" help:"How text is cut before merging: gpt2, cl100k, llama3, or a regular expression."`
	Threads int      `help:"Threads that learn; 0 takes all. Encoding is measured on one."`
}

func (benchTokenizerCmd) Help() string { return example("anneal bench tokenizer --vocab 8192 --mb 20") }

func (c benchTokenizerCmd) Run(s *session) error {
	text := lab.Text{Paths: c.Paths}
	if len(c.Paths) == 0 {
		source, err := lab.GoSource()
		if err != nil {
			return err
		}
		text = lab.Text{Paths: []string{source}, Options: corpus.Options{Extensions: []string{".go"}}}
	}
	return s.untilSignal(func(ctx context.Context) error {
		r, err := lab.BenchTokenizer(ctx, text, int64(c.MB)*1e6, tokenizer.TrainOptions{VocabSize: c.Vocab, Pattern: c.Pattern, Threads: c.Threads})
		if err != nil {
			return asData(err)
		}
		s.printf("%s to %s tokens: learnt in %.2f s (%.1f MB/s), encodes %.1f MB/s cold and %.1f MB/s warm on one core, %.2f bytes/token\n",
			megabytes(r.Bytes), thousands(int64(r.VocabSize)), r.TrainSeconds, r.TrainMBPerSecond, r.EncodeColdMBPerSecond, r.EncodeWarmMBPerSecond, r.BytesPerToken)
		return s.emit(r)
	})
}
