package cuda

// A Report is what this machine has for CUDA, for people who ask why it does not run.
type Report struct {
	Built     bool      `json:"built"` // into this binary
	Libraries []Library `json:"libraries,omitempty"`
	Cards     []Found   `json:"cards,omitempty"`
}

// A Library is one of the vendor's: Fault says what is wrong with it, and what to do, unless it is "".
type Library struct {
	Name    string `json:"name"` // "driver"
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	Fault   string `json:"fault,omitempty"`
}

// Found is a card of this machine.
type Found struct {
	Name       string `json:"name"`
	Capability string `json:"capability"` // "9.0"
	Memory     int    `json:"memory_bytes"`
	Free       int    `json:"free_bytes"`
	Fault      string `json:"fault,omitempty"`

	BF16      float64 `json:"bf16_flops"`       // operations a second of dense products, 0 if that is not known
	Bandwidth float64 `json:"bytes_per_second"` // of its memory, likewise
}
