package main

type benchCmd struct {
	Attention benchAttentionCmd `cmd:"" help:"Patterns of attention over the length of a row, against full attention."`
	Data      benchDataCmd      `cmd:"" help:"Every part of the way from text to shards of tokens."`
	Gemm      benchGemmCmd      `cmd:"" help:"Matrix products of training against the measured peak."`
	Memory    benchMemoryCmd    `cmd:"" help:"Activations and time of each way to recompute them."`
	Optim     benchOptimCmd     `cmd:"" help:"Optimizer steps against the memory bandwidth."`
	Step      benchStepCmd      `cmd:"" help:"Whole training steps on random tokens."`
	Tokenizer benchTokenizerCmd `cmd:"" help:"Learning a vocabulary and encoding with it."`
}
