package main

import (
	"fmt"
	"strings"
)

// recorder writes kernels that record a call and then make it.
func recorder(kernels []kernel) string {
	var b strings.Builder
	b.WriteString("package device\n\nimport \"anneal/tensor\"\n\n")
	b.WriteString("// Each kernel is noted, and made by the device below.\n\n")
	for _, k := range kernels {
		var args []string
		for _, p := range k.params {
			args = append(args, p.name)
		}
		all := strings.Join(args, ", ")
		fmt.Fprintf(&b, "// %s implements Device.\n%s\n", k.name, k.head("rec *Recorder", ""))
		fmt.Fprintf(&b, "rec.begin(%q, %s)\n", k.name, all)
		if k.result != "" {
			b.WriteString("defer rec.end()\nreturn ")
		}
		if last := k.params[len(k.params)-1]; strings.HasPrefix(last.kind, "...") {
			all += "..."
		}
		fmt.Fprintf(&b, "rec.Device.%s(%s)\n", k.name, all)
		if k.result == "" {
			b.WriteString("rec.end()\n")
		}
		b.WriteString("}\n\n")
	}
	return b.String()
}
