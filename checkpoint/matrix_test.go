package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// rankTensors is the state of a model in training as ranks divide it: a fused weight whose parts have rows 24, 8 and 8,
// its state by elements and by blocks of 256 of them, its factored state, small vectors, scales and an average.
func rankTensors() []Tensor {
	tensors := []Tensor{
		{Name: "qkv", DType: "F32", Shape: []int{40, 64}},
		{Name: "qkv.m", DType: "U8", Shape: []int{40, 64}, Optim: true},
		{Name: "qkv.m.scale", DType: "F32", Shape: []int{10}, Optim: true},
		{Name: "qkv.r", DType: "F32", Shape: []int{40}, Optim: true},
		{Name: "qkv.c", DType: "F32", Shape: []int{3, 64}, Optim: true},
		{Name: "norm", DType: "F32", Shape: []int{64}},
		{Name: "norm.m", DType: "F32", Shape: []int{64}, Optim: true},
		{Name: "fp8.scale", DType: "F32", Shape: []int{3}},
		{Name: "qkv.ema", DType: "F32", Shape: []int{40, 64}, Average: true},
		{Name: "norm.ema", DType: "F32", Shape: []int{64}, Average: true},
	}
	for i := range tensors {
		width := map[string]int64{"F32": 4, "U8": 1}[tensors[i].DType]
		tensors[i].Data = make([]byte, width*volume(tensors[i].Shape))
		fillAt(tensors[i].Data, 1, i)
	}
	return tensors
}

// A division says which regions of a tensor each of several ranks owns.
type division func(t Tensor, rank, ranks int) []Region

// byElements gives every rank a run of elements, in grains of 256; a rank may get none.
func byElements(t Tensor, rank, ranks int) []Region {
	grain := map[string]int64{"qkv.m.scale": 1}[t.Name]
	if grain == 0 {
		grain = 256
	}
	n := volume(t.Shape)
	grains := (n + grain - 1) / grain
	from := grains * int64(rank) / int64(ranks) * grain
	to := min(grains*int64(rank+1)/int64(ranks)*grain, n)
	if from >= to {
		return nil
	}
	return []Region{{From: from, To: to}}
}

// byParts gives every rank whole parts of the fused weight, as boxes of rows, and the rest to the first or last rank.
func byParts(t Tensor, rank, ranks int) (list []Region) {
	if len(t.Shape) == 2 && t.Shape[0] == 40 {
		row := 0
		for part, rows := range []int{24, 8, 8} {
			if part%ranks == rank {
				list = append(list, Region{Box: Box{[]int{row, 0}, []int{rows, 64}}})
			}
			row += rows
		}
		return list
	}
	if owner := len(t.Name) % 2 * (ranks - 1); rank == owner {
		return []Region{{}}
	}
	return nil
}

// parts returns what a rank has of tensors.
func (d division) parts(tensors []Tensor, rank, ranks int) (list []Tensor) {
	for _, t := range tensors {
		regions := d(t, rank, ranks)
		if t.Name == "fp8.scale" { // the same on all ranks, so the first one writes it
			if regions = nil; rank == 0 {
				regions = []Region{{}}
			}
		}
		for _, r := range regions {
			list = append(list, partOf(t, r))
		}
	}
	return list
}

// Whatever the number of ranks and the division in which a checkpoint was written, any other reads it, and its hash is
// the same.
func TestAnyRanksReadWhatAnyOthersWrote(t *testing.T) {
	tensors := rankTensors()
	weights, optimizer, err := HashTensors(tensors)
	if err != nil {
		t.Fatal(err)
	}
	divisions := map[string]division{"by elements": byElements, "by parts": byParts}
	for written, division := range divisions {
		for writers := 1; writers <= 4; writers++ {
			s, err := open(t.TempDir(), Options{Log: quiet, Together: true}, &faulty{})
			if err != nil {
				t.Fatal(err)
			}
			parts := make([][]Tensor, writers)
			for rank := range parts {
				parts[rank] = division.parts(tensors, rank, writers)
			}
			name := fmt.Sprintf("written by %d ranks %s", writers, written)
			if err := saveParts(s, 1, parts, nil); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for read, division := range divisions {
				for readers := 1; readers <= 4; readers++ {
					for rank := range readers {
						want := division.parts(tensors, rank, readers)
						got := slices.Clone(want)
						for i := range got {
							got[i].Data = make([]byte, len(want[i].Data))
						}
						if len(got) == 0 {
							continue
						}
						load := func() error { _, err := Load(s.root, step(1), got, nil); return err }
						if rank == 0 {
							load = func() error { _, err := s.LoadLatest(got, nil); return err }
						}
						if err := load(); err != nil {
							t.Fatalf("%s, read by %d %s: %v", name, readers, read, err)
						}
						for i := range got {
							if !bytes.Equal(got[i].Data, want[i].Data) {
								t.Fatalf("%s, read by %d %s: rank %d has other numbers in %s%v",
									name, readers, read, rank, got[i].Name, got[i].Region)
							}
						}
					}
				}
			}
			w, o, _, err := Hash(s.root)
			if w != weights || o != optimizer || err != nil {
				t.Errorf("%s: Hash = %s, %s, %v; the whole tensors have %s, %s", name, w, o, err, weights, optimizer)
			}
			if _, err := Verify(s.root); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s.Close()
		}
	}
}

// A rank reads the chunks that hold some of what it loads and no others: damage in a chunk is noticed if and only if
// the chunk is read.
func TestRanksReadTheirShareOfTheChunks(t *testing.T) {
	const chunks = 6
	whole, _ := stateAt(1, chunks*chunkBytes)
	whole = whole[:1]
	for _, c := range []struct{ writers, readers, most int }{{1, 2, 8}, {2, 3, 10}} {
		s := mustOpen(t, t.TempDir(), Options{Log: quiet})
		parts := make([][]Tensor, c.writers)
		for i := range parts {
			parts[i] = share(whole, i, c.writers)
		}
		if err := saveParts(s, 1, parts, nil); err != nil {
			t.Fatal(err)
		}
		e, err := named(s.root, step(1))
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for _, f := range e.manifest.Files {
			for i := range f.CRC32C {
				if f.Name == stateName {
					continue
				}
				good := f.CRC32C[i]
				f.CRC32C[i]++
				for rank := range c.readers {
					got := share(whole, rank, c.readers)
					if _, err := e.load(s.root, got, nil, follower); errors.As(err, new(*Fault)) {
						read++
					} else if err != nil {
						t.Fatal(err)
					}
				}
				f.CRC32C[i] = good
			}
		}
		if read < chunks || read > c.most {
			t.Errorf("written by %d, read by %d: all together read %d chunks, want %d to %d",
				c.writers, c.readers, read, chunks, c.most)
		}
	}
}

// The snapshot of a writer, for which training waits, holds what it writes and nothing else.
func TestASnapshotHoldsTheWritersPartOnly(t *testing.T) {
	tensors, state := stateAt(1, 4<<20)
	for _, writers := range []int{1, 2, 4} {
		s := mustOpen(t, t.TempDir(), Options{Log: quiet})
		dir, err := s.Begin(1, 10, state)
		if err != nil {
			t.Fatal(err)
		}
		for i := range writers {
			w := Writer{Root: s.root, Number: i}
			if err := errors.Join(w.Write(dir, share(tensors, i, writers)), w.Wait()); err != nil {
				t.Fatal(err)
			}
			if got, want := w.snapshot.size(), 8<<20/writers+1<<10; got > want {
				t.Errorf("of %d writers, number %d copies %d bytes, want at most %d", writers, i, got, want)
			}
			if err := w.Close(); err != nil || w.snapshot.size() > 0 {
				t.Errorf("%d bytes are left, %v", w.snapshot.size(), err)
			}
		}
		if err := errors.Join(s.Commit(writers), s.Wait()); err != nil {
			t.Fatal(err)
		}
	}
}
