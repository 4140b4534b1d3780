package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "anneal"

// house lists the rooms from top to bottom. A package belongs to the room with the longest matching path; rooms on one
// line may not import each other.
var house = [][]string{
	{"cmd/anneal"},
	{"lab"},
	{"train"},
	{"train/checkpoint", "train/config"},
	{"plan"},
	{"model"},
	{"optim", "schedule"},
	{"nn"},
	{"precision"},
	{"autograd"},
	{"device/cpu"},
	{"device/cpu/flash"},
	{"device/cpu/gemm"},
	{"device/cpu/vec"},
	{"device/cpu/pool", "device/cpu/isa"},
	{"device/conformance"},
	{"device"},
	{"dataset"}, // the data wing, from here to corpus
	{"tokenizer"},
	{"corpus"},
	{"tensor"},
	{"hf"}, // the formats
	{"safetensors"},
	{"internal"},
}

// dataWing is what the data wing may import besides itself.
var dataWing = map[string]bool{"tensor": true, "internal": true}

func TestImportsPointDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
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
		for _, i := range p.Imports {
			check(t, p.ImportPath, i)
		}
	}
}

func check(t *testing.T, from, to string) {
	path, ours := strings.CutPrefix(to, module+"/")
	if !ours {
		return
	}
	a, fromFloor := room(strings.TrimPrefix(from, module+"/"))
	b, toFloor := room(path)
	switch {
	case fromFloor < 0:
		t.Errorf("%s has no place in the house", from)
	case toFloor < 0:
		t.Errorf("%s has no place in the house", to)
	case a == b: // within a room
	case toFloor <= fromFloor:
		t.Errorf("%s imports %s, which does not stand below it", from, to)
	case isData(a) && !isData(b) && !dataWing[b]:
		t.Errorf("%s is in the data wing and imports %s", from, to)
	}
}

func isData(room string) bool { return room == "dataset" || room == "tokenizer" || room == "corpus" }

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
