//go:build !amd64 && !arm64

package isa

func runs(t Tier) bool { return t == Generic }

func fastDot() bool { return false }
