package main

// commandsElsewhere says what the commands of other programs are here.
var commandsElsewhere = map[string]string{
	"pretrain": "anneal train", "run": "anneal train", "fit": "anneal train",
	"finetune": "anneal train CONFIG --init-from DIR", "sft": "anneal train CONFIG --init-from DIR",
	"continue": "anneal resume", "sample": "anneal generate", "infer": "anneal generate",
	"inference": "anneal generate", "predict": "anneal generate", "complete": "anneal generate",
	"chat": "anneal serve", "test": "anneal eval", "validate": "anneal eval", "benchmark": "anneal bench",
	"profile": "anneal bench", "convert": "anneal export or anneal import or anneal tokenizer convert",
	"prepare": "anneal data build", "preprocess": "anneal data build", "download": "anneal data sample",
	"tokenize": "anneal data build or anneal tokenizer encode", "dedup": "anneal data dedup",
	"deduplicate": "anneal data dedup", "filter": "anneal data curate", "curate": "anneal data curate",
	"quantize": "anneal compress", "prune": "anneal compress", "dashboard": "anneal watch",
	"tensorboard": "anneal watch", "ui": "anneal watch", "sweep": "anneal lab ablate", "ablate": "anneal lab ablate",
	"list": "anneal ls", "info": "anneal ls", "status": "anneal watch", "new": "anneal init",
	"checkpoint": "anneal ckpt", "lr": "anneal lr-find",

	"data prepare": "anneal data build", "data tokenize": "anneal data build", "data pack": "anneal data build",
	"data download": "anneal data sample", "data filter": "anneal data curate", "data clean": "anneal data curate",
	"data deduplicate": "anneal data dedup", "tokenizer learn": "anneal tokenizer train",
}

// flagsElsewhere says what the flags of other programs are here, where a command has such a flag.
var flagsElsewhere = map[string]string{
	"output": "out", "output-dir": "out", "output-file": "out", "save-dir": "out", "o": "out",
	"max-new-tokens": "max-tokens", "n-predict": "max-tokens", "max-length": "max-tokens", "n": "max-tokens",
	"size": "vocab", "format": "to", "data-dir": "data", "dataset": "data", "data-path": "data",
	"num-threads": "threads", "n-threads": "threads", "jobs": "threads", "workers": "threads", "num-workers": "threads",
	"gpu": "device", "cuda": "device", "type": "dtype", "quantization": "dtype",
}

// argumentsElsewhere are flags of other programs for what is a command's first argument here.
var argumentsElsewhere = map[string]bool{
	"config": true, "config-file": true, "c": true, "model": true, "model-path": true, "checkpoint": true, "run": true,
	"input": true, "file": true, "path": true, "i": true, "f": true, "m": true,
}
