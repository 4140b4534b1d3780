// Package nvrtc binds NVIDIA's runtime compiler, which compiles CUDA C++ to code for one card.
package nvrtc
