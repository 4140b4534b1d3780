package main

import "strings"

// null writes kernels that do nothing and return 0.
func null(kernels []kernel) string {
	var b strings.Builder
	b.WriteString("package device\n\nimport \"anneal/tensor\"\n\n// The kernels do nothing.\n\n")
	for _, k := range kernels {
		b.WriteString(k.head("Null", ""))
		if k.result != "" {
			b.WriteString(" return 0 ")
		}
		b.WriteString("}\n")
	}
	return b.String()
}
