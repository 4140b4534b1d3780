package device

// A LinearRule says how the state of linear attention takes up a token; see Device.LinearAttention.
type LinearRule int

// The rules of linear attention.
const (
	AddRule        LinearRule = iota // adds a key and its value; one gate for each key-value head, or none
	DeltaRule                        // replaces the value of a key; one gate for each key-value head: β
	GatedDeltaRule                   // DeltaRule on a state that decays; two gates: β and α
)

// HasGates reports whether the rule needs gates. AddRule can do without.
func (r LinearRule) HasGates() bool { return r != AddRule }

// GateCols returns the columns of gates: K heads, one after the other, with as many numbers as the rule takes.
func (h Heads) GateCols() int {
	if h.Rule == GatedDeltaRule {
		return 2 * h.KV
	}
	return h.KV
}
