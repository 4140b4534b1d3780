package gemm

import (
	"testing"
	"unsafe"
)

// The assembly reads visits at these offsets (gen/visit.go).
func TestVisitLayout(t *testing.T) {
	var v visit
	var a ahead
	for name, c := range map[string][2]uintptr{
		"to":      {unsafe.Offsetof(v.to), 0},
		"ld":      {unsafe.Offsetof(v.ld), 8},
		"toBelow": {unsafe.Offsetof(v.toBelow), 16},
		"c":       {unsafe.Offsetof(v.c), 24},
		"cBelow":  {unsafe.Offsetof(v.cBelow), 32},
		"a":       {unsafe.Offsetof(v.a), 40},
		"lda":     {unsafe.Offsetof(v.lda), 48},
		"aBelow":  {unsafe.Offsetof(v.aBelow), 56},
		"b":       {unsafe.Offsetof(v.b), 64},
		"k":       {unsafe.Offsetof(v.k), 72},
		"add":     {unsafe.Offsetof(v.add), 80},
		"tiles":   {unsafe.Offsetof(v.tiles), 88},
		"done":    {unsafe.Offsetof(v.done), 96},
		"ahead":   {unsafe.Offsetof(v.ahead), 128},
		"beside":  {unsafe.Offsetof(v.beside), 512},
		"part":    {unsafe.Offsetof(v.part), 520},
		"step":    {unsafe.Offsetof(a.step), 8},
		"later":   {unsafe.Offsetof(a.later), 16},
		"stride":  {unsafe.Offsetof(a.stride), 24},
		"size":    {unsafe.Sizeof(a), 32},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is at %d, the assembly reads %d", name, c[0], c[1])
		}
	}
}
