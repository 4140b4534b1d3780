package device

// Null is a device that does not compute or access memory. Running a model on it with measuring arenas gives the
// memory of a real run, from the same code.
//
// gen writes its kernels, and those of devicetest, from the interface Device.
//
//go:generate go run ./gen
type Null struct{ Unknown }

var _ Device = Null{}

// Name returns "null".
func (Null) Name() string { return "null" }

// Close does nothing.
func (Null) Close() {}
