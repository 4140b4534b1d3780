package device

// A LinearRule says how linear attention adds a token to its state; see Device.LinearAttention.
type LinearRule int

// The rules of linear attention.
const (
	AddRule        LinearRule = iota // adds a key and its value; one gate for each key-value head, or none
	DeltaRule                        // replaces the value of a key; one gate for each key-value head: β
	GatedDeltaRule                   // DeltaRule on a state that decays; two gates: β and α
	VectorGateRule                   // AddRule without φ, on a state whose dimensions decay separately: E gates
)

// VectorGateChunk is the number of tokens that VectorGateRule adds to the state at a time; it divides LinearChunk.
const VectorGateChunk = 16

// HasGates reports whether the rule needs gates. AddRule can do without.
func (r LinearRule) HasGates() bool { return r != AddRule }

// GateCols returns the number of columns of gates: for each of the K heads, as many numbers as the rule needs.
func (h Heads) GateCols() int {
	switch h.Rule {
	case GatedDeltaRule:
		return 2 * h.KV
	case VectorGateRule:
		return h.Size * h.KV
	}
	return h.KV
}
