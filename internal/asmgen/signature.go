package asmgen

import (
	"fmt"
	"strings"
)

// FuncOf starts a function like Func, but with parameters of the types []E, *E, int, float32 and float64, each
// written with its type, and with a result unless that is empty:
//
//	f.FuncOf("dotAVX512", "returns Σ a·b.", "a []float32, b []float32", "float32")
//
// In Arg and ArgRef a slice s is s_base and s_len, and the result is ret.
func (f *File) FuncOf(name, doc, params, result string) *Func {
	fn := &Func{file: f, name: name, offsets: map[string]int{}}
	end := 0
	place := func(name string, size int) {
		end = (end + size - 1) / size * size
		fn.offsets[name] = end
		end += size
	}
	for _, p := range strings.Split(params, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(p), " ")
		switch {
		case strings.HasPrefix(kind, "[]"):
			place(name+"_base", 8)
			place(name+"_len", 8)
			place(name+"_cap", 8)
		case kind == "float32":
			place(name, 4)
		default:
			place(name, 8)
		}
	}
	if result != "" {
		end = (end + 7) &^ 7
		place("ret", map[string]int{"float32": 4, "float64": 8}[result])
	}
	signature := strings.TrimSuffix(fmt.Sprintf("%s(%s) %s", name, params, result), " ")
	fmt.Fprintf(&f.decl, "\n// %s %s\n//\n//go:noescape\nfunc %s\n", name, doc, signature)
	fmt.Fprintf(&f.asm, "\n// func %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", signature, name, end)
	return fn
}
