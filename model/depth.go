package model

// Stochastic depth (Huang et al. 2016, arXiv 1603.09382): training drops whole residual branches at random, later
// ones more often, and divides the others by their probability of survival:
//
//	x ← x + b·f(x)/p_l,  b ~ Bernoulli(p_l),  p_l = 1 − (l/L)·model.stochastic_depth,  l = 1 … L
//
// Both branches of a layer have its p_l and are drawn independently. A draw holds for one micro-batch, so a dropped
// branch is not computed at all, forward or backward: the layers take about (1 − rate·(L+1)/2L) of their time. A draw
// for each sequence, which is usual for images, would vary less but save nothing, because kernels process all
// sequences together. Here gradients accumulate over several micro-batches and so average several draws. Evaluation
// and generation use every branch.
//
// The losses of routers (autograd.Router) are not divided: they count where their branch survives.
//
// Memory: none, as for dropout. If every micro-batch of a step drops a branch, the gradients of its parameters are
// zero. The draw is a function of (seed, step, branch, index of the micro-batch's first token): the same after a
// resume and when a branch is recomputed, but different for other micro-batch sizes. The default is 0, which changes
// no bits. 0.1 to 0.2 are usual for language models. Not for shallow models or runs of one epoch: these are limited by
// capacity, not by data.

// depthRate returns the probability that layer l of n, counted from 1, drops a branch.
func depthRate(l, n int, final float64) float64 { return float64(l) / float64(n) * final }
