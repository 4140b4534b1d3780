package asmgen

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// every writes an instruction of every kind, with registers whose bits differ.
func every(fn *Func) {
	for _, r := range [][]int{{0, 1, 2}, {31, 14, 17}, {9, 22, 30}} {
		for name, f := range forms {
			fn.V(name, r[:strings.Count(f.operands, ",")+1]...)
		}
		fn.VCopy(r[0], r[1])
		fn.VClear(r[0])
		fn.VBytes(r[0], 0xa5)
		fn.VBytes(r[1], 0x5a)
		for lane := range 4 {
			fn.VLane("fmla", r[0], r[1], r[2], lane)
			fn.VLane("fmul", r[0], r[1], r[2], lane)
			fn.VLane("mla", r[0], r[1], r[2], lane)
			fn.VSplat(r[0], r[1], lane)
			fn.VInsert(r[0], lane, r[1], 3-lane)
		}
		for _, name := range []string{"shl", "sshr", "ushr", "usra"} {
			fn.VShift(name, r[0], r[1], 1)
			fn.VShift(name, r[0], r[1], 31)
		}
		for _, name := range []string{"shll", "shll2", "shrn"} {
			fn.VShift(name, r[0], r[1], 16)
		}
		fn.VSplatOf(r[0], "R17")
		for _, size := range []int{1, 2, 4, 8, 16} {
			for _, offset := range []int{0, size, 255 * size} {
				fn.VLoad(r[0], size, offset, "R26")
				fn.VStore(r[0], size, offset, "R5")
			}
			fn.VLoadAt(r[0], size, "R3", "R19")
		}
		for _, offset := range []int{0, -1024, 1008} {
			fn.VLoadPair(r[0], r[1], offset, "R12")
			fn.VStorePair(r[0], r[1], offset, "R21")
		}
		for _, vectors := range []int{0, 1, -3, 255, -256} {
			fn.ZLoad(r[0], vectors, "R9")
			fn.ZStore(r[1], vectors, "R22")
		}
		for i, slice := range []string{"R12", "R13", "R14", "R15"} {
			fn.FMOPA(i, r[0], r[2])
			fn.ZAdd(r[0], r[2])
			fn.ZFromRow(r[0], i, slice, 3-i)
		}
	}
	fn.SMStart()
	fn.SMStop()
	fn.ZAClear()
	fn.ZAll()
}

// The words equal the GNU assembler's encodings of the text in their comments, which is valid input for it.
func TestWordsAreThoseOfTheGNUAssembler(t *testing.T) {
	golden, err := os.ReadFile("testdata/neon.golden")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		word, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		want[text] = word
	}
	f := &File{Arch: "arm64"}
	every(f.Func("every", "", "x int"))
	words := regexp.MustCompile(`WORD \$0x(\w{8}) // (.*)`).FindAllStringSubmatch(f.asm.String(), -1)
	if len(words) < 3*len(forms) {
		t.Fatalf("%d words of %d forms", len(words), len(forms))
	}
	for _, w := range words {
		switch word, ok := want[w[2]]; {
		case !ok:
			t.Errorf("%s is not in testdata/neon.golden; see encodings.sh beside it", w[2])
		case word != w[1]:
			t.Errorf("%s is %s, want %s", w[2], w[1], word)
		}
	}
}

// Instructions without an encoding are refused, not encoded wrongly.
func TestWhatHasNoEncodingIsRefused(t *testing.T) {
	for name, write := range map[string]func(fn *Func){
		"no instruction":    func(fn *Func) { fn.V("fsin", 0, 1) },
		"too far":           func(fn *Func) { fn.ZLoad(0, 256, "R0") },
		"no slice":          func(fn *Func) { fn.ZFromRow(0, 0, "R11", 0) },
		"too few registers": func(fn *Func) { fn.V("fadd", 0, 1) },
		"odd offset":        func(fn *Func) { fn.VLoad(0, 16, 8, "R0") },
		"far offset":        func(fn *Func) { fn.VLoad(0, 4, 4*4096, "R0") },
		"far pair":          func(fn *Func) { fn.VLoadPair(0, 1, 1024, "R0") },
		"no register":       func(fn *Func) { fn.VLoad(0, 4, 0, "R18") },
		"no shift":          func(fn *Func) { fn.VShift("shl", 0, 1, 32) },
		"no such shift":     func(fn *Func) { fn.VShift("ror", 0, 1, 1) },
	} {
		refused := func() (refused bool) {
			defer func() { refused = recover() != nil }()
			write((&File{Arch: "arm64"}).Func("f", "", "x int"))
			return false
		}()
		if !refused {
			t.Errorf("%s: written", name)
		}
	}
}
