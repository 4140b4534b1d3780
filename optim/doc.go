// Package optim holds the optimizers, one file each. They update FP32 master weights in place and own no memory: their
// state lives in an arena that the trainer lays out. The package imports device and tensor.
package optim
