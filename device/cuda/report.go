package cuda

// A Report describes the CUDA support of this machine, for diagnosis.
type Report struct {
	Built     bool      `json:"built"` // whether this binary was built with CUDA
	Libraries []Library `json:"libraries,omitempty"`
	Cards     []Found   `json:"cards,omitempty"`
}

// A Library is one of NVIDIA's libraries. Fault says what is wrong and what to do; it is "" if nothing is wrong.
type Library struct {
	Name    string `json:"name"` // "driver"
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	Fault   string `json:"fault,omitempty"`
}

// Found describes a card of this machine.
type Found struct {
	Name       string `json:"name"`
	Capability string `json:"capability"` // "9.0"
	Memory     int    `json:"memory_bytes"`
	Free       int    `json:"free_bytes"`
	Fault      string `json:"fault,omitempty"`

	BF16      float64 `json:"bf16_flops"`       // operations per second of dense products, 0 if unknown
	Bandwidth float64 `json:"bytes_per_second"` // of its memory, 0 if unknown
}
