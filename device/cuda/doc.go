// Package cuda runs training on one NVIDIA GPU: it implements device.Device with kernels in CUDA C++, which the vendor's
// runtime compiler makes for the card at hand when they are first used, and with the vendor's matrix products.
//
// A binary has it if it was built with the tag cuda, on Linux; without cgo even then, for the vendor's libraries are opened when a
// device is. Without the tag Open says how to build one.
//
// A kernel's method fills in a call (launch.go) and returns: the card works through its queue in order, and the host waits only
// where a method returns numbers. Every thread of a process may use a card, if its context is made the thread's own first; that costs less
// than handing each call to one thread that has it, so that is what every entry does. A failure stays (Device.fail): what comes after it
// does nothing, and Wait reports it.
//
// Start with device.go, launch.go and memory.go; then any kernel: rmsnorm.go says how kernels/rmsnorm.cu is launched. Below are driver,
// nvrtc and cublaslt, thin bindings of the vendor's libraries, which dynlib finds; kernels holds the sources; emulator stands
// in for a GPU in tests. The package may import tensor, device and those below it.
package cuda
