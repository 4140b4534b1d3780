// Package precision holds the precision policies: which number format each kind of tensor has. A policy is one row of a
// table. The package imports autograd and tensor.
package precision

import (
	"fmt"
	"slices"
	"strings"

	"anneal/autograd"
	"anneal/tensor"
)

// A Policy names the storage formats of a run. Master weights, their gradients, optimizer moments, norm statistics, the
// log-sum-exp of attention, logits and losses always have the format Master: F32, or F64 in the reference mode.
type Policy struct {
	Name       string
	Master     tensor.DType // weights, gradients, moments, statistics, logits, losses
	Stream     tensor.DType // residual stream and its gradient
	Activation tensor.DType // what layers hand to each other, and their gradients
	Operand    tensor.DType // matrix operands are rounded to this; products are summed in Master
	Doc        string
}

var policies = []Policy{
	{"bf16", tensor.F32, tensor.F32, tensor.BF16, tensor.BF16, "BF16 matrix operands and activations, FP32 master weights, sums, norms, softmax, loss and optimizer"},
	{"fp32", tensor.F32, tensor.F32, tensor.F32, tensor.F32, "everything in FP32"},
	{"fp64", tensor.F64, tensor.F64, tensor.F64, tensor.F64, "everything in FP64 on portable kernels: the reference for tests, for tiny models"},
}

// Lookup returns the policy of a name.
func Lookup(name string) (Policy, error) {
	i := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, fmt.Errorf("precision %q is not known\n  try one of: %s", name, strings.Join(Names(), ", "))
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

// Types returns what the tape needs to know of the policy.
func (p Policy) Types() autograd.Types {
	return autograd.Types{Stream: p.Stream, Activation: p.Activation, Operand: p.Operand, Stat: p.Master}
}
