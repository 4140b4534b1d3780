// Package optim holds the optimizers, one file each. They update FP32 master weights in place and own no memory: their
// state lives in an arena that the trainer lays out, their temporary values in one that it lends.
//
// Start with Optimizer (optimizer.go): what an optimizer keeps of a parameter, and how it makes one update of it. An
// optimizer is a struct of constants and sees one parameter at a time, so that it may treat parameters differently by role
// (adam8bit keeps embeddings in 32 bit), and a fused weight by its parts (adafactor factors q, k and v each). AdamW is the
// plainest example. A new one is a file here, a kernel in device if none fits, a case in the trainer, its values in
// train/config/optimizer.go, and a line in the tests' list of all optimizers, which then hold it to every general rule.
//
// The order of a step stands at train's Trainer.Step; within Update decay comes first. The package imports device, tensor
// and nn.
package optim
