package plan

// A Layer holds the sizes that determine what a layer of GPT keeps for its backward pass.
type Layer struct {
	Tokens  int // of a micro-batch, s·b
	Context int // s: tokens of a sequence
	Dim     int // h
	Heads   int // a
	Tensor  int // t: ranks that share the layer
}

// Activations are the bytes that each rank keeps of one layer for its backward pass, with each way to reduce them
// (Korthikanti et al. 2022, arXiv 2205.05198, table 2). They assume values of 2 bytes, dropout masks of 1 byte, an MLP
// of width 4·h, and attention that stores its [s, s] matrices.
//
//	whole      s·b·h·(34 + 5·a·s/h)            one rank has the layer
//	tensor     s·b·h·(10 + 24/t + 5·a·s/(h·t)) norms, dropout and the inputs of products are whole on every rank
//	sequence   s·b·h/t·(34 + 5·a·s/h)          each rank has these for its own tokens
//	selective  s·b·h/t·34                      with sequence parallelism; attention is computed again
//	full       s·b·h·2                         the layer's input; all else is computed again
//
// Attention here never stores [s, s], so compare the footprint of a run (train.Footprint) with selective.
type Activations struct {
	Whole     float64
	Tensor    float64
	Sequence  float64
	Selective float64
	Full      float64
}

// Activations returns the bytes of a layer.
func (l Layer) Activations() Activations {
	sbh, t := float64(l.Tokens)*float64(l.Dim), float64(max(l.Tensor, 1))
	core := 5 * float64(l.Heads) * float64(l.Context) / float64(l.Dim) // of attention
	return Activations{
		Whole:     sbh * (34 + core),
		Tensor:    sbh * (10 + 24/t + core/t),
		Sequence:  sbh / t * (34 + core),
		Selective: sbh / t * 34,
		Full:      sbh * 2,
	}
}
