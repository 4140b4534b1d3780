// Package nvrtc is the vendor's runtime compiler: CUDA C++ in, code for one card out.
package nvrtc
