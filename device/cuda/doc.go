// Package cuda implements device.Device on one NVIDIA GPU, with kernels in CUDA C++, which NVIDIA's runtime compiler
// compiles for the card on first use, and with NVIDIA's library of matrix products.
//
// A binary includes it if it was built with the tag cuda, on Linux. It does not need cgo, because the libraries are
// loaded when a device is opened. Without the tag, Open returns an error that explains how to build such a binary.
//
// A kernel's method fills in a call (launch.go) and returns. The card executes its queue in order, and the host waits
// only in methods that return numbers. Any thread can use a card after making the card's context current; every entry
// does that, which costs less than handing each call to a dedicated thread. A failure is permanent (Device.fail):
// later calls do nothing, and Wait reports it.
//
// Start with device.go, launch.go and memory.go, then any kernel: rmsnorm.go launches kernels/rmsnorm.cu. The
// packages driver, nvrtc and cublaslt are thin bindings of NVIDIA's libraries, which package find finds; kernels
// holds the sources; emulator replaces a GPU in tests. The package may import tensor, device and those packages.
package cuda
