package model

// Stochastic depth (Huang et al. 2016, arXiv 1603.09382): training leaves out whole residual branches at random, more of
// the later ones, and divides those that stay by the probability of staying:
//
//	x ← x + b·f(x)/p_l,  b ~ Bernoulli(p_l),  p_l = 1 − (l/L)·model.stochastic_depth,  l = 1 … L
//
// Both branches of a layer have its p_l and are drawn on their own. A draw holds for one micro-batch, so that a dropped
// branch is not computed at all, forward or backward: a step takes about (1 − rate·(L+1)/2L) of the time of the layers. Drawing
// for each sequence, as is usual for images, would vary less and save nothing, since kernels take all sequences at once; here
// gradients that add up over several micro-batches average several draws. Evaluation and generation use every branch.
//
// Memory: none kept, as for dropout. A parameter whose branch no micro-batch of a step kept has a gradient of zero. The draw
// is a function of (seed, step, branch, number of the micro-batch's first token): the same after a resume and when a branch is
// recomputed, another for other micro-batch sizes. The default is 0, which leaves every bit as it was. 0.1 to 0.2 are usual
// for language models; not for shallow ones, or for runs of one epoch that are short of capacity, not of data.

// depthRate returns the probability that layer l of n, counted from 1, drops a branch.
func depthRate(l, n int, final float64) float64 { return float64(l) / float64(n) * final }
