package main

import "anneal/train"

// weightsFlag says which weights of a run to use.
type weightsFlag struct {
	Weights string `default:"last" enum:"last,ema" help:"Weights of the newest checkpoint: last as they are, or ema, their moving average (average.ema)."`
}

// open loads the run with these weights; the caller closes it.
func (w weightsFlag) open(dir string, threads int) (*train.Trained, error) {
	if w.Weights == "ema" {
		return train.OpenAverage(dir, threads)
	}
	return train.Open(dir, threads)
}
