// Package bench times this machine, one part of the work to a file: whole training steps (step.go), those of several
// ranks (ranks.go), recomputation (memory.go), matrix products (gemm.go, accelerator.go), attention (attention.go),
// generation (generate.go), optimizers (optim.go, newtonschulz.go), the preparation of data (dataspeed.go) and
// tokenizers (tokenizer.go).
//
// published.go holds runs that others measured on clusters, beside which plan/cluster predicts their time.
//
// Start with Step (step.go). The package may import train, prepare and what stands below them. The directory peers
// holds the scripts that time other systems.
package bench
