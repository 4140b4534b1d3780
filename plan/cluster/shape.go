package cluster

// A Shape is a decoder-only transformer.
type Shape struct {
	Name    string `json:"name"`
	Layers  int    `json:"layers"`
	Dim     int    `json:"dim"`
	Heads   int    `json:"heads"`
	KVHeads int    `json:"kv_heads"` // 0: Heads
	HeadDim int    `json:"head_dim"` // 0: Dim / Heads
	FFN     int    `json:"ffn"`
	Gated   bool   `json:"gated"` // SwiGLU: three matrices in place of two
	Vocab   int    `json:"vocab"`
	Context int    `json:"context"` // tokens of a sequence
	Tied    bool   `json:"tied"`    // the embedding is the head
	Rotary  bool   `json:"rotary"`
	Window  int    `json:"window,omitempty"`  // of attention: the token itself and those before it; 0 means all
	Mean    int    `json:"mean,omitempty"`    // tokens that other patterns see, on average and before causality
	Dropout bool   `json:"dropout,omitempty"` // its masks are kept
	Side    bool   `json:"side_by_side,omitempty"`

	Experts   int `json:"experts,omitempty"` // 0: dense
	TopK      int `json:"top_k,omitempty"`
	ExpertFFN int `json:"expert_ffn,omitempty"`
	SharedFFN int `json:"shared_ffn,omitempty"`
	Dense     int `json:"dense_layers,omitempty"` // the first layers, without experts
	Extra     int `json:"extra_layers,omitempty"` // layers that predict further tokens, each with its own head

	Latent Latent `json:"latent,omitzero"`
}

// Latent is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434); the zero value is ordinary attention.
type Latent struct {
	Query, KV int // ranks of the compressed queries, keys and values
	Rope, V   int // dimensions of a head: rotary ones, and those of values; HeadDim does not count rotary ones
}

func (s *Shape) kv() int {
	if s.KVHeads > 0 {
		return s.KVHeads
	}
	return s.Heads
}

// sharedBy reports whether n ranks of tensor parallelism can share the heads. Heads of keys and values are divided, or
// repeated so that each rank has one.
func (s *Shape) sharedBy(n int) bool {
	return s.Heads%max(n, 1) == 0 && (s.kv()%max(n, 1) == 0 || n%max(s.kv(), 1) == 0)
}

func (s *Shape) headDim() int {
	if s.HeadDim > 0 {
		return s.HeadDim
	}
	return s.Dim / s.Heads
}

// queryDim and valueDim are the dimensions of a head in the two products of attention.
func (s *Shape) queryDim() int { return s.headDim() + s.Latent.Rope }

func (s *Shape) valueDim() int {
	if s.Latent.KV > 0 {
		return s.Latent.V
	}
	return s.headDim()
}

func (s *Shape) matrices() float64 {
	if s.Gated {
		return 3
	}
	return 2
}

// attentionParameters returns the parameters of the attention projections of a layer.
func (s *Shape) attentionParameters() float64 {
	n := 0.0
	for _, p := range s.projections() {
		n += float64(p.in) * float64(p.out)
	}
	return n
}

// A projection is a product with a weight of [in, out].
type projection struct {
	in, out int
	cut     bool // by heads among the ranks of tensor parallelism; else whole on each
	rows    bool // cut along in, so that its results are summed
}

// projections are the products of attention with weights.
func (s *Shape) projections() []projection {
	a, hd := s.Heads, s.headDim()
	if l := s.Latent; l.KV > 0 {
		return []projection{
			{in: s.Dim, out: l.Query},
			{in: l.Query, out: a * (hd + l.Rope), cut: true},
			{in: s.Dim, out: l.KV + l.Rope},
			{in: l.KV, out: a * (hd + l.V), cut: true},
			{in: a * l.V, out: s.Dim, cut: true, rows: true},
		}
	}
	return []projection{
		{in: s.Dim, out: (a + 2*s.kv()) * hd, cut: true},
		{in: a * hd, out: s.Dim, cut: true, rows: true},
	}
}

// largestProduct returns the number of elements of the largest weight of a layer; experts count one by one.
func (s *Shape) largestProduct() float64 {
	n := float64(s.Dim) * float64(max(s.FFN, s.ExpertFFN, s.SharedFFN))
	for _, p := range s.projections() {
		n = max(n, float64(p.in)*float64(p.out))
	}
	return n
}

// hasExperts reports whether layer i has experts.
func (s *Shape) hasExperts(i int) bool { return s.Experts > 0 && i >= s.Dense }

// upTo returns the end of a part that has the layers before to. The last part also has the layers that predict further
// tokens.
func (s *Shape) upTo(to int) int {
	if to == s.Layers {
		return to + s.Extra
	}
	return to
}

// layerParameters returns the parameters of layer i that every rank of data parallelism has a copy of, and those of
// its experts.
func (s *Shape) layerParameters(i int) (shared, experts float64) {
	d := float64(s.Dim)
	shared = s.attentionParameters() + 2*d
	if !s.hasExperts(i) {
		return shared + s.matrices()*d*float64(s.FFN), 0
	}
	shared += d*float64(s.Experts) + s.matrices()*d*float64(s.SharedFFN)
	return shared, float64(s.Experts) * s.matrices() * d * float64(s.ExpertFFN)
}

// spanParameters is layerParameters for layers from … to.
func (s *Shape) spanParameters(from, to int) (shared, experts float64) {
	dense := to - from
	if s.Experts > 0 {
		dense = max(0, min(to, s.Dense)-from)
		one, own := s.layerParameters(s.Dense)
		shared, experts = one*float64(to-from-dense), own*float64(to-from-dense)
	}
	if dense > 0 {
		one, _ := s.layerParameters(0)
		shared += one * float64(dense)
	}
	return shared, experts
}

// table returns the parameters of the embedding, and of the head.
func (s *Shape) table() float64 { return float64(s.Vocab) * float64(s.Dim) }

// Parameters returns all parameters, and those that one token uses.
func (s *Shape) Parameters() (all, active float64) {
	for i := range s.Layers + s.Extra {
		shared, experts := s.layerParameters(i)
		all += shared + experts
		active += shared
		if experts > 0 {
			active += experts * float64(s.TopK) / float64(s.Experts)
		}
	}
	tables := s.table()
	if !s.Tied {
		tables *= 2
	}
	return all + tables + float64(s.Dim), active + tables + float64(s.Dim)
}

// FLOPs returns the operations of forward and backward for one token, without recomputation: 6 for each parameter
// that multiplies it, and 12·L·H·Q·T of attention, not halved for causality (PaLM, arXiv 2204.02311, appendix B).
func (s *Shape) FLOPs() float64 { return 6*s.multiplying() + s.attentionFLOPs() }

// multiplying returns the parameters that multiply a token, which include the head but not the embedding.
func (s *Shape) multiplying() float64 {
	_, n := s.Parameters()
	if !s.Tied {
		n -= s.table()
	}
	return n + float64(s.Extra)*s.table()
}

func (s *Shape) attentionFLOPs() float64 {
	return 6 * float64(s.Layers+s.Extra) * float64(s.Heads) * float64(s.queryDim()+s.valueDim()) * float64(s.seen())
}

// seen returns how many tokens attention sees, before causality.
func (s *Shape) seen() int {
	switch {
	case s.Mean > 0:
		return min(s.Mean, s.Context)
	case s.Window > 0 && s.Window < s.Context:
		return 2*s.Window - s.Window*s.Window/s.Context
	}
	return s.Context
}
