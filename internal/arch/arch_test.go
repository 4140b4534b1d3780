package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "anneal"

// house lists the rooms from top to bottom. A package belongs to the room with the longest matching path; rooms on one
// line may not import each other.
var house = [][]string{
	{"cmd/anneal", "examples"},
	{"lab"},
	{"bench", "serve"},
	{"use"},
	{"dash"},
	{"run"},
	{"plan", "sinks"},
	{"train"},
	{"train/traintest"},
	{"interop", "prepare", "machine", "tasks"},
	{"checkpoint", "config"},
	{"parallel"},
	{"program/draw"},
	{"program", "scaling", "hardware"},
	{"comm/commtest"},
	{"comm/local", "comm/mpi", "comm/nccl", "comm/absent"},
	{"comm"},
	{"model"},
	{"optim", "schedule", "compress"},
	{"nn", "attention"},
	{"precision"},
	{"autograd"},
	{"device/devicetest"},
	{"device/cpu", "device/cuda", "device/disk"},
	{"device/cpu/flash", "device/cuda/nvrtc", "device/cuda/cublaslt", "device/cuda/kernels", "device/cuda/emulator"},
	{"device/cpu/gemm", "device/cuda/driver"},
	{"device/cpu/vec", "device/cuda/find"},
	{"device/cpu/pool"},
	{"device/conformance"},
	{"device"},
	{"curate"}, // the data wing, from here to extract
	{"dataset"},
	{"tokenizer"},
	{"dedup"},
	{"corpus", "fasttext"},
	{"extract"},
	{"tensor"},
	{"chart"},
	{"hf"}, // the formats
	{"safetensors", "gguf", "tokenfile", "tfevents"},
	{"internal"},
}

// dataWing lists the packages outside of the data wing that it may import.
var dataWing = map[string]bool{"tensor": true, "internal": true}

func TestImportsPointDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "cuda,mpi", "-json=ImportPath,Imports", module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages++
		for _, i := range p.Imports {
			if fault := check(p.ImportPath, i); fault != "" {
				t.Error(fault)
			}
		}
	}
	if packages < len(house) {
		t.Errorf("go list knows %d packages, fewer than the house has floors", packages)
	}
}

// A binary that loads libraries at run time is linked to the system's loader. The default binary does not load
// libraries and is not linked to it.
func TestTheDefaultBinaryLoadsNoLibraries(t *testing.T) {
	for _, tag := range []string{"", "mpi"} {
		cmd := exec.Command("go", "list", "-tags", tag, "-deps", module+"/cmd/anneal", module+"/comm/mpi")
		cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if loads := strings.Contains(string(out), "ebitengine/purego"); loads != (tag != "") {
			t.Errorf("with the tag %q the binary loads libraries: %v", tag, loads)
		}
	}
}

func TestTheRuleRefusesWhatItShould(t *testing.T) {
	for _, c := range []struct {
		from, to string
		refused  bool
	}{
		{"train", "model", false},
		{"train", "fmt", false},
		{"device/cpu/gemm/gen", "internal/asmgen", false},
		{"device/cpu/flash", "device/cpu/gemm", false},
		{"dataset", "tensor", false},
		{"model", "train", true},
		{"config", "train", true},
		{"optim", "schedule", true}, // neighbours
		{"device/cpu/gemm", "device/cpu/flash", true},
		{"corpus", "tokenizer", true},
		{"dataset", "hf", true}, // below it, but not for the data wing
		{"attic", "tensor", true},
		{"train", "attic", true},
	} {
		to := c.to
		if to != "fmt" {
			to = module + "/" + to
		}
		if fault := check(module+"/"+c.from, to); (fault != "") != c.refused {
			t.Errorf("%s imports %s: %q, want refused %v", c.from, c.to, fault, c.refused)
		}
	}
}

// check returns what is wrong with an import, or "".
func check(from, to string) string {
	path, ours := strings.CutPrefix(to, module+"/")
	if !ours {
		return ""
	}
	a, fromFloor := room(strings.TrimPrefix(from, module+"/"))
	b, toFloor := room(path)
	switch {
	case fromFloor < 0:
		return from + " has no place in the house"
	case toFloor < 0:
		return to + " has no place in the house"
	case a == b: // within a room
		return ""
	case toFloor <= fromFloor:
		return from + " imports " + to + ", which does not stand below it"
	case isData(a) && !isData(b) && !dataWing[b]:
		return from + " is in the data wing and imports " + to
	}
	return ""
}

func isData(room string) bool {
	return room == "curate" || room == "dataset" || room == "tokenizer" || room == "dedup" || room == "corpus" ||
		room == "fasttext" || room == "extract"
}

// room returns the room of a package and its floor from the top; −1 if it has none.
func room(pkg string) (name string, floor int) {
	floor = -1
	for i, rooms := range house {
		for _, r := range rooms {
			if (pkg == r || strings.HasPrefix(pkg, r+"/")) && len(r) > len(name) {
				name, floor = r, i
			}
		}
	}
	return name, floor
}

// go test ./... -torture=5m passes the flag to the tests of every package, and tests that do not define it fail.
func TestEveryTestKnowsTheFlagsOfTorture(t *testing.T) {
	const torture = module + "/internal/torture"
	out, err := exec.Command("go", "list", "-json=ImportPath,TestImports,XTestImports", module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath                string
			TestImports, XTestImports []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		imports := append(p.TestImports, p.XTestImports...)
		if len(imports) > 0 && p.ImportPath != torture && !slices.Contains(imports, torture) {
			t.Errorf("the tests of %s do not know the flag -torture\n  write import _ %q into one of its test files",
				p.ImportPath, torture)
		}
	}
}
