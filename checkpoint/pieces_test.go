package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"strings"
	"testing"
)

// coveredOnce goes through the elements of all pieces and reports whether each element of the tensor comes once.
func coveredOnce(e tensorEntry) bool {
	numbers := Tensor{Shape: e.Shape, Data: make([]byte, 2*volume(e.Shape))}
	for i := range volume(e.Shape) {
		numbers.Data[2*i], numbers.Data[2*i+1] = byte(i), byte(i>>8)
	}
	seen := make([]int, volume(e.Shape))
	for _, p := range e.Pieces {
		for b := elementsOf(numbers, p.Region); len(b) > 0; b = b[2:] {
			seen[int(b[0])|int(b[1])<<8]++
		}
	}
	for _, n := range seen {
		if n != 1 {
			return false
		}
	}
	return true
}

// FuzzPieces makes pieces of a tensor from bytes. They are accepted if and only if each lies within the tensor, and
// together they hold each element once.
func FuzzPieces(f *testing.F) {
	f.Add([]byte{2, 4, 6, 0, 0, 4, 6, 0, 12, 0, 0, 4, 6, 12, 24})
	f.Add([]byte{2, 4, 6, 0, 0, 4, 3, 0, 12, 0, 3, 4, 3, 0, 12})
	f.Add([]byte{2, 4, 6, 0, 0, 4, 3, 0, 12, 0, 2, 4, 4, 0, 16})
	f.Add([]byte{1, 7, 0, 7, 0, 3, 0, 7, 4, 7})
	f.Add([]byte{0, 0, 1})
	f.Fuzz(func(t *testing.T, text []byte) {
		next := func() (n int) {
			if len(text) > 0 {
				n, text = int(int8(text[0])), text[1:]
			}
			return n
		}
		rank := min(max(next(), 0), 3)
		e := tensorEntry{DType: "U8", Shape: make([]int, rank)}
		for d := range rank {
			e.Shape[d] = min(max(next(), 0), 8)
		}
		valid := true
		for len(text) > 0 && len(e.Pieces) < 12 {
			r := Region{Box: Box{make([]int, rank), make([]int, rank)}}
			inside := true
			for d := range rank {
				r.Box.Offset[d] = next()
			}
			for d := range rank {
				r.Box.Shape[d] = next()
				inside = inside && r.Box.Offset[d] >= 0 && r.Box.Shape[d] >= 0 &&
					r.Box.Offset[d]+r.Box.Shape[d] <= e.Shape[d]
			}
			r.From, r.To = int64(next()), int64(next())
			size := r.To - r.From
			if r.From == 0 && r.To == 0 && inside {
				size = volume(r.Box.Shape)
			}
			valid = valid && inside && r.From >= 0 && r.From <= r.To && r.To <= volume(r.Box.Shape)
			e.Pieces = append(e.Pieces, piece{place{modelFile, 0, size, 0}, r})
		}
		want := valid && len(e.Pieces) > 0 && coveredOnce(e)
		if err := e.check(map[string]int64{modelFile: 1 << 20}); (err == nil) != want {
			t.Errorf("shape %v, pieces %v: %v, want them accepted: %v", e.Shape, e.Pieces, err, want)
		}
	})
}

// asBefore rewrites the manifest of a step as it was before tensors were in pieces.
func asBefore(t *testing.T, root string, step int, change func(m map[string]any)) {
	t.Helper()
	edit(t, at(root, step, manifestName), func(text []byte) []byte {
		m := map[string]any{}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		for _, v := range m["tensors"].(map[string]any) {
			tensor := v.(map[string]any)
			for key, value := range tensor["pieces"].([]any)[0].(map[string]any) {
				tensor[key] = value
			}
			delete(tensor, "pieces")
		}
		change(m)
		m["manifest_crc32c"] = "00000000"
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		digits, _ := checksum(crc32.Checksum(text, castagnoli)).MarshalText()
		return bytes.Replace(text, []byte(crcField+"00000000"), append([]byte(crcField), digits...), 1)
	})
}

func TestManifestsFromBeforePiecesAreRead(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"format 1": func(m map[string]any) { m["format_version"] = 1 },
		"format 2": func(m map[string]any) { m["run"] = "00112233445566ff" },
	} {
		root := t.TempDir()
		s := mustOpen(t, root, Options{Log: quiet})
		mustSave(t, s, small, 1)
		weights, optimizer, _, err := Hash(root)
		if err != nil {
			t.Fatal(err)
		}
		asBefore(t, root, 1, change)
		if text, _ := os.ReadFile(at(root, 1, manifestName)); bytes.Contains(text, []byte("pieces")) {
			t.Fatalf("the manifest still has pieces: %s", text)
		}
		wantLatest(t, root, 1, small)
		if _, err := Verify(root); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w, o, _, err := Hash(root); w != weights || o != optimizer || err != nil {
			t.Errorf("%s: Hash = %s, %s, %v; want %s, %s", name, w, o, err, weights, optimizer)
		}
		tensors := blank(small)
		want, _ := stateAt(1, small)
		tensors[0] = partOf(tensors[0], Region{From: 5, To: 500})
		if _, err := LoadLatest(root, tensors, nil); err != nil ||
			!bytes.Equal(tensors[0].Data, want[0].Data[20:2000]) {
			t.Errorf("%s: a part of it: %v", name, err)
		}
	}
}

func TestAPlaceBesidePiecesIsRefused(t *testing.T) {
	root := t.TempDir()
	mustSave(t, mustOpen(t, root, Options{Log: quiet}), small, 1)
	asBefore(t, root, 1, func(m map[string]any) {
		m["tensors"].(map[string]any)["layer.norm"].(map[string]any)["pieces"] = []any{}
	})
	if err := verifyStep(root, 1); err == nil ||
		!strings.Contains(err.Error(), `tensor "layer.norm": it has a place of its own and pieces`) {
		t.Errorf("error = %v", err)
	}
	if _, err := LoadStep(root, 1, blank(small), nil); errors.Is(err, ErrNone) || err == nil {
		t.Errorf("LoadStep = %v", err)
	}
}
