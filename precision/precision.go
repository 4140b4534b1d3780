// Package precision holds the precision policies: the number format of each kind of tensor. A policy is one row of a
// table. FP16 also needs lossscale.go, FP8 needs fp8.go. The package imports autograd, device and tensor.
package precision

import (
	"fmt"
	"slices"
	"strings"

	"anneal/autograd"
	"anneal/tensor"
)

// A Policy names the formats of a run. Gradients of weights, optimizer moments, gains and statistics of norms, the
// log-sum-exp of attention, logits and losses always have the format Master, which is F32, or F64 in the reference
// mode. All arithmetic uses Master, too.
type Policy struct {
	Name   string
	Master tensor.DType // gradients of weights, moments, gains, statistics, logits, losses
	// matrices and tables between updates; if narrower than Master, updates are rounded stochastically
	Weight     tensor.DType
	Stream     tensor.DType // residual stream and its gradient
	Activation tensor.DType // results of layers, and their gradients; attention reads and writes it
	Operand    tensor.DType // matrix operands are rounded to it; products are summed in Master
	FP8        *FP8         // FP8 products of hidden matrices; nil for other policies
	Doc        string
	Emulated   string // how CPUs emulate the policy and what that costs; "" if it is not emulated
}

var policies = []Policy{
	{Name: "bf16", Master: tensor.F32, Weight: tensor.F32, Stream: tensor.F32, Activation: tensor.BF16,
		Operand: tensor.BF16,
		Doc:     "BF16 matrix operands and activations; FP32 master weights, sums, norms, softmax, loss and optimizer"},
	{Name: "bf16_sr", Master: tensor.F32, Weight: tensor.BF16, Stream: tensor.F32, Activation: tensor.BF16,
		Operand: tensor.BF16,
		Doc: "like bf16, but without FP32 master weights: updates are computed in FP32 and rounded stochastically " +
			"to BF16, 2 bytes per parameter less"},
	{Name: "fp16", Master: tensor.F32, Weight: tensor.F32, Stream: tensor.F32, Activation: tensor.F16,
		Operand: tensor.F16,
		Emulated: "FP16 is emulated on this CPU: stored in 2 bytes, rounded exactly, computed in FP32; " +
			"not faster than bf16",
		Doc: "FP16 matrix operands and activations, otherwise like bf16; gradients are scaled (loss_scale) to " +
			"avoid underflow"},
	{Name: "fp8", Master: tensor.F32, Weight: tensor.F32, Stream: tensor.F32, Activation: tensor.BF16,
		Operand: tensor.BF16, FP8: &FP8{},
		Emulated: "FP8 is emulated on this CPU: operands are rounded exactly and multiplied in FP32; " +
			"slower than bf16, and not smaller",
		Doc: "FP8 products of hidden matrices, E4M3 forward and E5M2 for gradients, one scale per tensor " +
			"(fp8.scaling); otherwise like bf16"},
	{Name: "tf32", Master: tensor.F32, Weight: tensor.F32, Stream: tensor.F32, Activation: tensor.F32,
		Operand: tensor.TF32,
		Emulated: "TF32 is emulated on this CPU: operands are rounded exactly and multiplied in FP32; " +
			"not faster than fp32",
		Doc: "matrix operands rounded to a 10-bit mantissa, ties away from zero; everything else in FP32"},
	{Name: "fp32", Master: tensor.F32, Weight: tensor.F32, Stream: tensor.F32, Activation: tensor.F32,
		Operand: tensor.F32,
		Doc:     "everything in FP32"},
	{Name: "fp64", Master: tensor.F64, Weight: tensor.F64, Stream: tensor.F64, Activation: tensor.F64,
		Operand: tensor.F64,
		Doc:     "everything in FP64 with portable kernels: the reference for tests, for tiny models"},
}

// Policies returns all policies.
func Policies() []Policy { return slices.Clone(policies) }

// Lookup returns the policy with the given name.
func Lookup(name string) (Policy, error) {
	i := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, fmt.Errorf("unknown precision %q\n  try one of: %s", name, strings.Join(Names(), ", "))
	}
	return policies[i], nil
}

// Names returns the names of all policies.
func Names() []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.Name
	}
	return names
}

// Types returns the formats that the tape uses.
func (p Policy) Types() autograd.Types {
	return autograd.Types{
		Stream: p.Stream, Activation: p.Activation, Operand: p.Operand, Stat: p.Master, FP8: p.FP8 != nil,
		FP8Heads: p.FP8 != nil && p.FP8.Attention,
	}
}

// Products reports whether weights that only matrix products read can be stored in the format of operands, so that
// products round nothing. FP8 needs the weights themselves for its scales, and TF32 is not a storage format.
func (p Policy) Products() bool {
	return p.FP8 == nil && (p.Operand == tensor.BF16 || p.Operand == tensor.F16)
}

// Scaled reports whether gradients need a loss scale, because the exponent range of FP16 is too small for them.
func (p Policy) Scaled() bool { return p.Activation == tensor.F16 }
