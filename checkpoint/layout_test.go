package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/safetensors"
)

// elementsOf returns the bytes of a region by going through its elements one by one.
func elementsOf(whole Tensor, r Region) []byte {
	box := r.Box
	if box.isZero() {
		box = Box{make([]int, len(whole.Shape)), whole.Shape}
	}
	elements, width := 1, 0
	for _, n := range whole.Shape {
		elements *= n
	}
	if elements > 0 {
		width = len(whole.Data) / elements
	}
	var out []byte
	var visit func(d, index int)
	visit = func(d, index int) {
		if d == len(whole.Shape) {
			out = append(out, whole.Data[index*width:][:width]...)
			return
		}
		for i := range box.Shape[d] {
			visit(d+1, index*whole.Shape[d]+box.Offset[d]+i)
		}
	}
	visit(0, 0)
	if r.From != 0 || r.To != 0 {
		out = out[int(r.From)*width : int(r.To)*width]
	}
	return out
}

// partOf returns a region of a tensor as a tensor of its own.
func partOf(whole Tensor, r Region) Tensor {
	whole.Region, whole.Data = r, elementsOf(whole, r)
	return whole
}

func volume(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}

// partition cuts a tensor into boxes, and some of these into runs, at random.
func partition(r *rand.Rand, shape []int) []Region {
	boxes := []Box{{make([]int, len(shape)), shape}}
	for range r.IntN(6) {
		i := r.IntN(len(boxes))
		if len(shape) == 0 {
			break
		}
		d := r.IntN(len(shape))
		a, b := boxes[i], Box{slices.Clone(boxes[i].Offset), slices.Clone(boxes[i].Shape)}
		at := r.IntN(a.Shape[d] + 1)
		a.Shape = slices.Clone(a.Shape)
		a.Shape[d], b.Offset[d], b.Shape[d] = at, b.Offset[d]+at, b.Shape[d]-at
		boxes[i] = a
		boxes = append(boxes, b)
	}
	var regions []Region
	for _, box := range boxes {
		if len(boxes) == 1 && r.IntN(2) == 0 {
			box = Box{}
		}
		n := volume(box.Shape)
		if box.isZero() {
			n = volume(shape)
		}
		cut := r.Int64N(n + 1)
		if r.IntN(2) == 0 || cut == 0 || cut == n {
			regions = append(regions, Region{Box: box})
			continue
		}
		regions = append(regions, Region{box, 0, cut}, Region{box, cut, n})
	}
	return regions
}

// randomRegion returns a random region: a box, or a run of the elements of one.
func randomRegion(r *rand.Rand, shape []int) Region {
	regions := partition(r, shape)
	return regions[r.IntN(len(regions))]
}

// nothing is a region of a tensor without elements.
func nothing(shape []int) Region {
	n := max(volume(shape), 1)
	if volume(shape) == 0 {
		return Region{}
	}
	return Region{From: n, To: n}
}

// randomTensors makes tensors of random shapes; a big one spans several chunks.
func randomTensors(r *rand.Rand, big bool) []Tensor {
	dtypes := []safetensors.DType{"F32", "BF16", "U8", "I64", "F8_E4M3", "F64"}
	tensors := []Tensor{{Name: "t", DType: "F32", Shape: []int{1 + r.IntN(12), 15, 1 + r.IntN(12)}}}
	if big {
		tensors[0].Shape = []int{90 + r.IntN(9), 150, 80 + r.IntN(9)}
	}
	for i := range 1 + r.IntN(5) {
		shape := make([]int, r.IntN(5))
		for d := range shape {
			shape[d] = r.IntN(9)
		}
		tensors = append(tensors, Tensor{
			Name: fmt.Sprint("t", i), DType: string(dtypes[r.IntN(len(dtypes))]), Shape: shape, Optim: r.IntN(3) == 0,
			Average: r.IntN(4) == 0,
		})
	}
	for i := range tensors {
		t := &tensors[i]
		n, _ := safetensors.DType(t.DType).ByteSize(t.Shape)
		t.Data = make([]byte, n)
		for j := range t.Data {
			t.Data[j] = byte(r.Uint32())
		}
	}
	return tensors
}

// deal cuts tensors into pieces and deals these to writers. A writer that gets nothing of a tensor says so.
func deal(r *rand.Rand, tensors []Tensor, writers int) [][]Tensor {
	parts := make([][]Tensor, writers)
	for _, t := range tensors {
		has := make([]bool, writers)
		for _, region := range partition(r, t.Shape) {
			w := r.IntN(writers)
			p := partOf(t, region)
			same := func(o Tensor) bool { return o.Name == t.Name && o.Region.String() == region.String() }
			if len(p.Data) == 0 && slices.ContainsFunc(parts[w], same) {
				continue
			}
			parts[w], has[w] = append(parts[w], p), true
		}
		for w := range has {
			if !has[w] {
				parts[w] = append(parts[w], partOf(t, nothing(t.Shape)))
			}
		}
	}
	return parts
}

// saveParts saves what every writer has, one after another.
func saveParts(s *Store, step int64, parts [][]Tensor, state any) error {
	dir, err := s.Begin(step, step*10, state)
	if err != nil {
		return err
	}
	for i, tensors := range parts {
		w := Writer{Root: s.root, Number: i, fs: s.fs}
		if err := errors.Join(w.Write(dir, tensors), w.Close()); err != nil {
			return errors.Join(err, s.Abandon())
		}
	}
	return errors.Join(s.Commit(len(parts)), s.Wait())
}

// Whatever the layout in which tensors were written, any other reads the same elements, and hashes are those of the
// whole.
func TestAnyLayoutReadsAnyOther(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, err := open(t.TempDir(), Options{Log: quiet}, &faulty{})
		if err != nil {
			t.Fatal(err)
		}
		tensors := randomTensors(r, seed%20 == 3)
		writers := 1 + r.IntN(8)
		if seed%10 == 0 {
			err = errors.Join(s.Save(1, 10, tensors, nil), s.Wait())
		} else {
			err = saveParts(s, 1, deal(r, tensors, writers), nil)
		}
		if err != nil {
			t.Fatalf("seed %d, %d writers: %v", seed, writers, err)
		}
		for reader := range 3 {
			var got []Tensor
			for _, whole := range tensors {
				p := partOf(whole, randomRegion(r, whole.Shape))
				if reader == 0 {
					p = whole
				}
				p.Data = make([]byte, len(p.Data))
				got = append(got, p)
			}
			if _, err := LoadLatest(s.root, got, nil); err != nil {
				t.Fatalf("seed %d, %d writers: %v", seed, writers, err)
			}
			for i := range got {
				if want := elementsOf(tensors[i], got[i].Region); !bytes.Equal(got[i].Data, want) {
					t.Fatalf("seed %d, %d writers: tensor %s %v, region %v: not what was written",
						seed, writers, got[i].Name, got[i].Shape, got[i].Region)
				}
			}
		}
		if good, err := Verify(s.root); err != nil || len(good[0].Ignored) > 0 {
			t.Fatalf("seed %d, %d writers: %+v, %v", seed, writers, good, err)
		}
		weights, optimizer, _ := HashTensors(tensors)
		if w, o, _, err := Hash(s.root); w != weights || o != optimizer || err != nil {
			t.Fatalf("seed %d, %d writers: Hash = %s, %s, %v; the whole tensors have %s, %s",
				seed, writers, w, o, err, weights, optimizer)
		}
		s.Close()
	}
}

// Two writers that each hold half.
func halves(whole Tensor) [][]Tensor {
	n := volume(whole.Shape)
	return [][]Tensor{{partOf(whole, Region{To: n / 2})}, {partOf(whole, Region{From: n / 2, To: n})}}
}

func TestPartsThatDoNotCoverEverythingOnceAreAFailedSave(t *testing.T) {
	tensors, _ := stateAt(2, small)
	whole := tensors[2] // [8, 32]
	box := func(off, ext []int, from, to int64) Tensor { return partOf(whole, Region{Box{off, ext}, from, to}) }
	for want, parts := range map[string][][]Tensor{
		`tensor "layer.w": pieces model.r00000.safetensors@0-128 and model.r00001.safetensors@127-256 overlap`: {
			halves(whole)[0], {partOf(whole, Region{From: 127, To: 256})}},
		`tensor "layer.w": element [4, 0] is in none of its 2 pieces, which hold 508 of 512 bytes`: {
			halves(whole)[0], {partOf(whole, Region{From: 130, To: 256})}},
		`pieces model.r00000.safetensors@0,0+8,20@10-30 and model.r00001.safetensors@0,16+8,16 overlap`: {
			{box([]int{0, 0}, []int{8, 20}, 10, 30)}, {box([]int{0, 16}, []int{8, 16}, 0, 0)}},
		`element [2, 7] is in none of its 2 pieces, which hold 334 of 512 bytes; the first piece is ` +
			`model.r00000.safetensors@0,0+8,16@0-39`: {
			{box([]int{0, 0}, []int{8, 16}, 0, 39)}, {box([]int{0, 16}, []int{8, 16}, 0, 0)}},
		`tensor "layer.w": it is BF16 [8 32] in model.r00000.safetensors@0-128, but BF16 [4 64] in`: {
			halves(whole)[0], {func() Tensor { t := halves(whole)[1][0]; t.Shape = []int{4, 64}; return t }()}},
		`pieces model.r00000.safetensors@0-128 and optim.r00001.safetensors@128-256 are in files of different kinds`: {
			halves(whole)[0], {func() Tensor { t := halves(whole)[1][0]; t.Optim = true; return t }()}},
		`model.r00000.safetensors and model.r00001.safetensors overlap`: {{whole}, {whole}},
	} {
		s, err := open(t.TempDir(), Options{Log: quiet}, &faulty{})
		if err != nil {
			t.Fatal(err)
		}
		mustSave(t, s, small, 1)
		if err := saveParts(s, 2, parts, nil); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), `"layer.w"`) {
			t.Errorf("error = %v, want one that says: %s", err, want)
		}
		wantLatest(t, s.root, 1, small)
		if got := names(t, s.root); len(got) != 2 {
			t.Errorf("%v is left", got)
		}
		s.Close()
	}
}

func TestImpossibleRegionsAreRefused(t *testing.T) {
	tensors, _ := stateAt(1, small)
	for want, r := range map[string]Region{
		`elements 0 to 257 do not lie within the 256`:        {To: 257},
		`elements 5 to 4 do not lie`:                         {From: 5, To: 4},
		`elements -1 to 4 do not lie`:                        {From: -1, To: 4},
		`the box @0,1+8,32 lies outside`:                     {Box: Box{[]int{0, 1}, []int{8, 32}}},
		`the box @-1,0+8,32 lies outside`:                    {Box: Box{[]int{-1, 0}, []int{8, 32}}},
		`the box @0,0+8,-1 lies outside`:                     {Box: Box{[]int{0, 0}, []int{8, -1}}},
		`the box @0+8 does not have the tensor's 2 dim`:      {Box: Box{[]int{0}, []int{8}}},
		`elements 0 to 9 do not lie within the 8 of the box`: {Box{[]int{0, 0}, []int{8, 1}}, 0, 9},
	} {
		tensors[2].Region = r
		if err := checkTensors(tensors); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), `"layer.w"`) {
			t.Errorf("error = %v, want one that says: %s", err, want)
		}
	}
	packed := Tensor{Name: "a", DType: "F4", Shape: []int{8}, Data: make([]byte, 4)}
	if err := checkTensors([]Tensor{packed}); err != nil {
		t.Error(err)
	}
	packed.Region = Region{To: 4}
	if err := checkTensors([]Tensor{packed}); err == nil {
		t.Error("a piece of a tensor of half bytes was accepted")
	}
}

// Only chunks that hold what is wanted are read: damage elsewhere does not matter.
func TestAPieceIsReadWithoutTheRest(t *testing.T) {
	const big = 5 * chunkBytes
	root := t.TempDir()
	whole, _ := stateAt(1, big)
	s := mustOpen(t, root, Options{Log: quiet})
	if err := errors.Join(s.Save(1, 10, whole[:1], nil), s.Wait()); err != nil {
		t.Fatal(err)
	}
	edit(t, at(root, 1, modelFile), func(b []byte) []byte { b[3*chunkBytes] ^= 1; return b })
	load := func(from, to int64) ([]byte, error) {
		part := whole[0]
		part.Region, part.Data = Region{From: from, To: to}, make([]byte, 4*(to-from))
		_, err := LoadStep(root, 1, []Tensor{part}, nil)
		return part.Data, err
	}
	got, err := load(100, chunkBytes/2)
	if err != nil || !bytes.Equal(got, whole[0].Data[400:2*chunkBytes]) {
		t.Errorf("beside the damage: %v", err)
	}
	_, err = load(100, chunkBytes/4*3+1)
	wantFault(t, err, modelFile, "embed", 3*chunkBytes)
}

func TestAMissingOrFailedPartIsAFailedSave(t *testing.T) {
	tensors, state := stateAt(2, small)
	for name, writers := range map[string]int{"one too few": 3, "none too few": 2} {
		s := mustOpen(t, t.TempDir(), Options{Log: quiet})
		mustSave(t, s, small, 1)
		dir, err := s.Begin(2, 20, state)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Begin(2, 20, state); err == nil {
			t.Error("two saves were begun at a time")
		}
		if err := s.Save(2, 20, tensors, state); err == nil {
			t.Error("a save was made while another was begun")
		}
		for i := range 2 {
			w := Writer{Root: s.root, Number: i}
			if err := errors.Join(w.Write(dir, share(tensors, i, 2)), w.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(s.Commit(writers), s.Wait()); (err == nil) != (writers == 2) {
			t.Errorf("%s: Commit = %v", name, err)
		} else if err != nil && !strings.Contains(err.Error(), "the part of writer 2 of 3 is missing") {
			t.Errorf("%s: Commit = %v", name, err)
		}
		wantLatest(t, s.root, map[int]int64{2: 2, 3: 1}[writers], small)
		if err := s.Commit(1); err == nil {
			t.Error("Commit without Begin succeeded")
		}
	}
	s := mustOpen(t, t.TempDir(), Options{Log: quiet})
	dir, err := s.Begin(2, 20, state)
	if err != nil {
		t.Fatal(err)
	}
	w := Writer{Root: s.root, Number: 1}
	if err := w.Write("step-00000003.tmp-00000000", tensors); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err == nil || !strings.Contains(err.Error(), "part 1 not saved") {
		t.Errorf("a part without a directory: %v", err)
	}
	if err := s.Abandon(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s.root); len(got) != 0 {
		t.Errorf("%v is left of %s", got, dir)
	}
}

// The process ends after the parts are complete and before they are a checkpoint.
func TestPartsWithoutAManifestAreNoCheckpoint(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	mustSave(t, s, small, 1)
	tensors, state := stateAt(2, small)
	dir, err := s.Begin(2, 20, state)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w := Writer{Root: root, Number: i}
		if err := errors.Join(w.Write(dir, share(tensors, i, 3)), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if parts, _ := filepath.Glob(filepath.Join(root, dir, "part-*.json")); len(parts) != 3 {
		t.Fatalf("parts = %v", parts)
	}
	letGo(s.lock)
	s.lock = nil
	wantLatest(t, root, 1, small)
	s = mustOpen(t, root, Options{Log: quiet})
	if got := names(t, root); slices.Contains(got, dir) {
		t.Errorf("%s is left after the next start", dir)
	}
	mustSave(t, s, small, 2)
	wantLatest(t, root, 2, small)
}
