package main

import (
	"fmt"

	"anneal/config"
	"anneal/precision"
)

// policyRow is one policy as `anneal explain precision` shows it: which tensors have which format.
type policyRow struct {
	Name       string `json:"name"`
	Weights    string `json:"weights"`
	Master     string `json:"gradients_and_moments"` // and the format of norms, sums, statistics, logits and losses
	Stream     string `json:"residual_stream"`
	Activation string `json:"activations"`
	Operand    string `json:"operands"`
	Hidden     string `json:"operands_of_hidden_matrices"`
	Doc        string `json:"doc"`
	Emulated   string `json:"emulated,omitempty"`
}

// explainPrecision prints the table of policies.
func explainPrecision(s *session, k config.Key) error {
	var rows []policyRow
	for _, p := range precision.Policies() {
		r := policyRow{
			p.Name, p.Weight.String(), p.Master.String(), p.Stream.String(), p.Activation.String(), p.Operand.String(),
			p.Operand.String(), p.Doc, p.Emulated,
		}
		if p.FP8 != nil {
			r.Hidden = "e4m3/e5m2"
		}
		rows = append(rows, r)
	}
	line := func(r policyRow) {
		s.printf("  %-8s %-8s %-12s %-7s %-11s %-8s %s\n",
			r.Name, r.Weights, r.Master, r.Stream, r.Activation, r.Operand, r.Hidden)
	}
	s.printf("\n")
	line(policyRow{"policy", "weights", "gradients, …", "stream", "activations", "operands", "hidden operands", "", ""})
	for _, r := range rows {
		line(r)
	}
	s.prosef("    ", "\n  gradients, …: also moments, gains, statistics and sums of norms and products, softmax, "+
		"logits, loss. hidden operands: operands of hidden matrices. Values stored in a wider format are rounded "+
		"when they become operands.\n\n")
	for _, r := range rows {
		s.row(fmt.Sprintf("  %-8s", r.Name), r.Doc)
		if r.Emulated != "" {
			s.row(fmt.Sprintf("  %-8s", ""), r.Emulated)
		}
	}
	return s.emit(struct {
		config.Key
		Policies []policyRow `json:"policies"`
	}{k, rows})
}

// emulated returns the policies whose arithmetic the CPU lacks.
func emulated() []string {
	var names []string
	for _, p := range precision.Policies() {
		if p.Emulated != "" {
			names = append(names, p.Name)
		}
	}
	return names
}
