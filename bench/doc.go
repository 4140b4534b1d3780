// Package bench times the work of this machine. Each file times one part: whole training steps (step.go), those of
// several ranks (ranks.go), recomputation (memory.go), matrix products (gemm.go, accelerator.go), attention
// (attention.go), generation (generate.go), optimizers (optim.go, newtonschulz.go), the preparation of data
// (dataspeed.go) and tokenizers (tokenizer.go).
//
// published.go compares runs that others measured on clusters with the predictions of plan/cluster.
//
// Start with Step (step.go). The package may import train, prepare and the packages below them. The directory peers
// holds the scripts that time other systems.
package bench
