package main

type benchCmd struct {
	All       benchAllCmd       `cmd:"" help:"Every benchmark, in a fixed order, as a file."`
	Attention benchAttentionCmd `cmd:"" help:"Attention patterns at several lengths, beside full attention."`
	Cores     benchCoresCmd     `cmd:"" help:"A training step on more cores than there are, simulated."`
	Data      benchDataCmd      `cmd:"" help:"Every stage from text to token shards."`
	Diff      benchDiffCmd      `cmd:"" help:"What changed between two files of bench all."`
	Generate  benchGenerateCmd  `cmd:"" help:"Generation, beside the memory bandwidth."`
	Gemm      benchGemmCmd      `cmd:"" help:"Matrix products of training, beside the measured peak."`
	Machine   benchMachineCmd   `cmd:"" help:"The speed of this machine's kernels, from which plans predict time."`
	Memory    benchMemoryCmd    `cmd:"" help:"Memory and time of each way to recompute activations."`
	Optim     benchOptimCmd     `cmd:"" help:"Optimizer steps, beside the memory bandwidth."`
	Plan      benchPlanCmd      `cmd:"" help:"Predicted times of steps, beside measured ones."`
	Ranks     benchRanksCmd     `cmd:"" help:"Training steps of several ranks, beside those of one."`
	Step      benchStepCmd      `cmd:"" help:"Whole training steps on random tokens."`
	Tokenizer benchTokenizerCmd `cmd:"" help:"Learning a vocabulary and encoding with it."`
}
