package main

type benchCmd struct {
	All       benchAllCmd       `cmd:"" help:"Run every benchmark in a fixed order."`
	Attention benchAttentionCmd `cmd:"" help:"Time attention patterns at several lengths, compared with full attention."`
	Cores     benchCoresCmd     `cmd:"" help:"Simulate a training step on more cores than this machine has."`
	Data      benchDataCmd      `cmd:"" help:"Time every stage from text to token shards."`
	Diff      benchDiffCmd      `cmd:"" help:"Compare two files of bench all."`
	Generate  benchGenerateCmd  `cmd:"" help:"Time generation, as a share of the memory bandwidth."`
	Gemm      benchGemmCmd      `cmd:"" help:"Time the matrix products of training, as a share of the measured peak."`
	Machine   benchMachineCmd   `cmd:"" help:"Measure this machine's kernels, so that plans can predict time."`
	Memory    benchMemoryCmd    `cmd:"" help:"Compare the memory and time of each way to recompute activations."`
	Optim     benchOptimCmd     `cmd:"" help:"Time optimizer steps, as a share of the memory bandwidth."`
	Plan      benchPlanCmd      `cmd:"" help:"Compare predicted with measured times of steps."`
	Ranks     benchRanksCmd     `cmd:"" help:"Time training steps of several ranks, compared with one."`
	Step      benchStepCmd      `cmd:"" help:"Time whole training steps on random tokens."`
	Tokenizer benchTokenizerCmd `cmd:"" help:"Time learning a vocabulary and encoding with it."`
}
