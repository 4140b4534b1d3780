package main

import (
	"fmt"
	"strings"
)

// deferred writes kernels that queue the CPU's kernels: they copy the contents of tensors at the time of the call, and
// wait only if they return numbers.
func deferred(kernels []kernel) string {
	var b strings.Builder
	b.WriteString("package devicetest\n\n")
	b.WriteString("import (\n\"slices\"\n\n\"anneal/device\"\n\"anneal/tensor\"\n)\n\n")
	b.WriteString("// Each kernel is the CPU's. It uses the tensors' contents at the time of the call, and runs when\n")
	b.WriteString("// its turn comes.\n\n")
	for _, k := range kernels {
		fmt.Fprintf(&b, "// %s implements device.Device.\n%s\n", k.name, k.head("d *Device", "device."))
		b.WriteString(k.takes())
		b.WriteString(k.call())
		b.WriteString("}\n\n")
	}
	return b.String()
}

// takes writes the statements that replace the tensors of a call by copies.
func (k kernel) takes() string {
	var single []string
	text := ""
	for _, p := range k.params {
		switch p.kind {
		case "*tensor.Tensor":
			single = append(single, "&"+p.name)
		case "...*tensor.Tensor", "[]*tensor.Tensor":
			text += fmt.Sprintf("%[1]s = slices.Clone(%[1]s)\nfor i := range %[1]s {\nd.take(&%[1]s[i])\n}\n", p.name)
		case "*Cache":
			text += fmt.Sprintf("%[1]s = d.cache(%[1]s)\n", p.name)
		default:
			for _, field := range p.tensors {
				single = append(single, "&"+p.name+"."+field)
			}
		}
	}
	if single != nil {
		text = "d.take(" + strings.Join(single, ", ") + ")\n" + text
	}
	return text
}

// call writes the statement that queues the CPU's kernel.
func (k kernel) call() string {
	var args []string
	numbers := "" // a parameter that receives numbers
	for _, p := range k.params {
		arg := p.name
		if strings.HasPrefix(p.kind, "...") {
			arg += "..."
		}
		if p.kind == "[]float64" {
			numbers = p.name
		}
		args = append(args, arg)
	}
	call := fmt.Sprintf("d.cpu.%s(%s)", k.name, strings.Join(args, ", "))
	switch {
	case numbers != "":
		return fmt.Sprintf("d.numbers(%s, func() { %s })\n", numbers, call)
	case k.result == "float64":
		return fmt.Sprintf("return d.number(func() float64 { return %s })\n", call)
	case k.result != "":
		return fmt.Sprintf("return %s(d.number(func() float64 { return float64(%s) }))\n", k.result, call)
	}
	return fmt.Sprintf("d.later(func() { %s })\n", call)
}
