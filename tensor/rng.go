package tensor

import "math"

// RNG is a counter-based generator (Philox4x32-10, Salmon et al. 2011): the number at an index is a pure function of
// (seed, purpose, step, index). It has no state, so results do not depend on the order of calls, threads or ranks,
// and a resumed run needs no generator state.
type RNG struct {
	key           [2]uint32
	step, purpose uint32
}

// Purposes separate the streams of one seed: they are a word of the counter, so streams never overlap.
const (
	PurposeInit    uint32 = 1 + iota // weight initialisation; step is the tensor's index
	PurposeSample                    // text generation; step is the position
	PurposeRound                     // stochastic rounding
	PurposeData                      // synthetic data
	PurposeLabel                     // labels drawn from the model; step is the optimizer update, index the token
	PurposeDropout                   // elements dropped; step is the optimizer step, index: device.Dropout
	PurposeDepth                     // branches dropped; step is the optimizer step, index: autograd.Drop
	PurposeGraph                     // random blocks of attention; step is the layer, index: attention.BigBird
	PurposeWire                      // gradients rounded to int8; step is the optimizer step, index: precision.WireKey
	PurposeMoment                    // moments rounded to BF16; step is the update, index: optim.Adam16bit
)

// NewRNG returns the stream of (seed, purpose, step).
func NewRNG(seed uint64, purpose, step uint32) RNG {
	return RNG{key: [2]uint32{uint32(seed), uint32(seed >> 32)}, step: step, purpose: purpose}
}

// Block returns the four 32-bit numbers at index.
func (r RNG) Block(index uint64) [4]uint32 {
	return Philox(r.Counter(index))
}

// Counter returns the counter and the key of the block at index, for kernels with their own Philox.
func (r RNG) Counter(index uint64) (counter [4]uint32, key [2]uint32) {
	return [4]uint32{uint32(index), uint32(index >> 32), r.step, r.purpose}, r.key
}

// Philox returns the block for a counter and a key.
func Philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for range 10 {
		p0 := uint64(c[0]) * 0xd2511f53
		p1 := uint64(c[2]) * 0xcd9e8d57
		c = [4]uint32{uint32(p1>>32) ^ c[1] ^ k[0], uint32(p1), uint32(p0>>32) ^ c[3] ^ k[1], uint32(p0)}
		k[0] += 0x9e3779b9
		k[1] += 0xbb67ae85
	}
	return c
}

// Uint32 returns number index of the stream: element index mod 4 of Block(index/4).
func (r RNG) Uint32(index uint64) uint32 { return r.Block(index >> 2)[index&3] }

// Float64 returns a uniform number in [0, 1) from Block(index), with 53 random bits.
func (r RNG) Float64(index uint64) float64 {
	b := r.Block(index)
	return float64((uint64(b[0])<<32|uint64(b[1]))>>11) * 0x1p-53
}

// Normals returns four standard normal numbers from Block(index) (two Box–Muller pairs of 32-bit uniforms: tails end
// at 6.7σ).
func (r RNG) Normals(index uint64) [4]float64 {
	b := r.Block(index)
	n0, n1 := boxMuller(b[0], b[1])
	n2, n3 := boxMuller(b[2], b[3])
	return [4]float64{n0, n1, n2, n3}
}

func boxMuller(u, v uint32) (float64, float64) {
	r := math.Sqrt(-2 * math.Log((float64(u)+0.5)*0x1p-32))
	sin, cos := math.Sincos(2 * math.Pi * 0x1p-32 * float64(v))
	return r * cos, r * sin
}
