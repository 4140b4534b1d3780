// Package optim holds the optimizers, one per file. They update FP32 master weights in place and own no memory: their
// state is in an arena of the trainer, and their temporary values in a scratch arena that the trainer lends.
//
// Start with Optimizer (optimizer.go), which lays out the state of a parameter and updates it. An optimizer is a
// struct of constants and sees one parameter at a time. It may treat parameters differently by role (adam8bit keeps
// embeddings in 32 bits), and the parts of a fused weight separately (adafactor factors q, k and v each). AdamW is
// the simplest example. To add an optimizer, write a file here, a kernel in device if none fits, a case in the
// trainer, its options in config/optimizer.go, and a line in the tests' list of optimizers, which then apply
// every general rule to it.
//
// Trainer.Step in package train gives the order of a step; within Update, decay comes first. The package imports
// device, tensor and nn.
package optim
