package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

// wantFault demands that err is a fault of the given file, tensor and offset (-2 for any).
func wantFault(t *testing.T, err error, file, tensor string, offset int64) {
	t.Helper()
	var f *Fault
	if !errors.As(err, &f) {
		t.Fatalf("error = %v, want a Fault in %s", err, file)
	}
	if f.File != file || f.Tensor != tensor || offset != -2 && f.Offset != offset {
		t.Fatalf("fault = %v; want file %s, tensor %q, offset %d", f, file, tensor, offset)
	}
}

// Every bit of every file counts: one that flips is found, its tensor named, and the checkpoint before is used.
func TestFlippedBitsAreFoundNamedAndFallenBackFrom(t *testing.T) {
	flipBits(t, 1, 9<<20)
	flipBits(t, 2, 64<<10)
}

func flipBits(t *testing.T, writers, big int) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Log: quiet})
	for step := int64(1); step <= 2; step++ {
		tensors, state := stateAt(step, big)
		if err := save(s, writers, step, tensors, state); err != nil {
			t.Fatal(err)
		}
	}
	e, err := find(root, 2)
	if err != nil {
		t.Fatal(err)
	}
	m := e.manifest
	type spot struct {
		file      string
		at, begin int64 // begin of the piece
		tensor    string
	}
	spots := []spot{{stateName, 3, 0, ""}, {m.Files[0].Name, 0, 0, ""}, {m.Files[0].Name, 9, 0, ""},
		{m.Files[1].Name, 20, 0, ""}}
	for name, ten := range m.Tensors {
		for _, p := range ten.Pieces {
			if p.Size > 0 {
				for _, at := range []int64{0, p.Size - 1, rand.Int64N(p.Size)} {
					spots = append(spots, spot{p.File, p.Offset + at, p.Offset, name})
				}
			}
		}
	}
	for _, c := range spots {
		flip := func(b []byte) []byte { b[c.at] ^= 1 << rand.IntN(8); return b }
		path := at(root, 2, c.file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, flip(bytes.Clone(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
		offset := max(c.at/chunkBytes*chunkBytes, c.begin)
		info := wantLatest(t, root, 1, big)
		if len(info.Skipped) != 1 {
			t.Fatalf("skipped = %v, want one", info.Skipped)
		}
		wantFault(t, info.Skipped[0], c.file, c.tensor, offset)
		_, err = LoadStep(root, 2, blank(big), nil)
		wantFault(t, err, c.file, c.tensor, offset)
		_, err = Verify(root)
		wantFault(t, err, c.file, c.tensor, offset)
		_, _, info, err = Hash(root)
		if c.file != stateName && (err != nil || info.Step != 1 || len(info.Skipped) != 1) {
			t.Errorf("Hash used step %d beside %v, %v; want 1 beside the fault", info.Step, info.Skipped, err)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wantLatest(t, root, 2, big)
}

func TestBrokenFilesAreFallenBackFrom(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, root string)
		file   string
		tensor string
		offset int64
	}{
		"truncated shard": {func(t *testing.T, root string) {
			edit(t, at(root, 2, modelFile), func(b []byte) []byte { return b[:len(b)-1000] })
		}, modelFile, "embed", -2},
		"shard with a byte more": {func(t *testing.T, root string) {
			edit(t, at(root, 2, optimFile), func(b []byte) []byte { return append(b, 0) })
		}, optimFile, "", -2},
		"empty shard": {func(t *testing.T, root string) {
			edit(t, at(root, 2, modelFile), func([]byte) []byte { return nil })
		}, modelFile, "", 0},
		"missing shard": {func(t *testing.T, root string) { os.Remove(at(root, 2, optimFile)) }, optimFile, "", -1},
		"shard is a directory": {func(t *testing.T, root string) {
			os.Remove(at(root, 2, modelFile))
			os.Mkdir(at(root, 2, modelFile), 0o755)
		}, modelFile, "", -1},
		"missing state": {func(t *testing.T, root string) { os.Remove(at(root, 2, stateName)) }, stateName, "", -1},
		"truncated state": {func(t *testing.T, root string) {
			edit(t, at(root, 2, stateName), func(b []byte) []byte { return b[:5] })
		}, stateName, "", 5},
		"missing manifest": {func(t *testing.T, root string) {
			os.Remove(at(root, 2, manifestName))
		}, manifestName, "", -1},
		"empty manifest": {func(t *testing.T, root string) {
			edit(t, at(root, 2, manifestName), func([]byte) []byte { return nil })
		}, manifestName, "", -1},
		"manifest of another step": {func(t *testing.T, root string) {
			b, _ := os.ReadFile(at(root, 1, manifestName))
			os.WriteFile(at(root, 2, manifestName), b, 0o644)
		}, manifestName, "", -1},
		"manifest of an older format": {func(t *testing.T, root string) {
			edit(t, at(root, 2, manifestName), func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"format_version": 2`), []byte(`"format_version": 0`), 1)
			})
		}, manifestName, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			s, err := open(root, Options{Log: quiet}, &faulty{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			mustSave(t, s, small, 1, 2)
			c.damage(t, root)
			info := wantLatest(t, root, 1, small)
			if len(info.Skipped) != 1 {
				t.Fatalf("skipped = %v, want one", info.Skipped)
			}
			wantFault(t, info.Skipped[0], c.file, c.tensor, c.offset)
			_, err = LoadStep(root, 2, blank(small), nil)
			wantFault(t, err, c.file, c.tensor, c.offset)
			err = verifyStep(root, 2)
			wantFault(t, err, c.file, c.tensor, c.offset)
		})
	}
}

func TestNothingUsableNamesEveryFault(t *testing.T) {
	root := t.TempDir()
	mustSave(t, mustOpen(t, root, Options{Log: quiet}), small, 1, 2)
	os.Remove(at(root, 1, optimFile))
	os.Remove(at(root, 2, manifestName))
	_, err := LoadLatest(root, blank(small), nil)
	if err == nil || !strings.Contains(err.Error(), step(1)+": "+optimFile) ||
		!strings.Contains(err.Error(), step(2)+": "+manifestName) {
		t.Errorf("error = %v, want both faults", err)
	}
	if errors.Is(err, ErrNone) {
		t.Error("damaged checkpoints were taken for none: a run would start over")
	}
	if _, err := LoadStep(root, 3, blank(small), nil); err == nil ||
		!strings.Contains(err.Error(), "no checkpoint of step 3") {
		t.Errorf("error = %v, want one about step 3", err)
	}
}

func TestExtraFilesAreIgnoredAndListed(t *testing.T) {
	root := t.TempDir()
	var log journal
	s := mustOpen(t, root, Options{Log: log.logger()})
	mustSave(t, s, small, 1)
	if err := os.WriteFile(at(root, 1, "model-00002.safetensors"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	info := wantLatest(t, root, 1, small)
	if !slices.Equal(info.Ignored, []string{"model-00002.safetensors"}) {
		t.Errorf("ignored = %v", info.Ignored)
	}
	if _, err := s.LoadLatest(blank(small), nil); err != nil ||
		!strings.Contains(log.String(), "model-00002.safetensors") {
		t.Errorf("%v; the log does not name the file: %s", err, log.String())
	}
}

// A newer anneal may have trained here in between: its checkpoint is not used, not deleted, and the message says why.
func TestFutureCheckpointsAreKept(t *testing.T) {
	root := t.TempDir()
	s := mustOpen(t, root, Options{Keep: 2, Log: quiet})
	mustSave(t, s, small, 1, 2)
	edit(t, at(root, 2, manifestName), func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"format_version": 2`), []byte(`"format_version": 3, "novelty": []`), 1)
	})
	info := wantLatest(t, root, 1, small)
	if len(info.Skipped) != 1 || !errors.Is(info.Skipped[0], ErrFuture) ||
		!strings.Contains(info.Skipped[0].Error(), "newer version of anneal") {
		t.Errorf("skipped = %v, want ErrFuture", info.Skipped)
	}
	mustSave(t, s, small, 3, 4, 5)
	if got, want := names(t, root), []string{"latest", step(2), step(4), step(5)}; !slices.Equal(got, want) {
		t.Errorf("the directory holds %v, want %v", got, want)
	}
}

func TestForeignNamesAreLeftAlone(t *testing.T) {
	root := t.TempDir()
	foreign := []string{
		"notes", "step-12", "step-00000001.bak", "step-00000001.tmp-xyz", "latest.tmp-1", "step-00000009",
	}
	for _, name := range foreign[:5] {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, foreign[5]), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, root, Options{Keep: 2, Log: quiet})
	mustSave(t, s, small, 1, 2, 3)
	for _, name := range foreign {
		if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
}

// Any cut and any changed byte of a manifest is noticed.
func TestManifestChecksItself(t *testing.T) {
	root := t.TempDir()
	mustSave(t, mustOpen(t, root, Options{Log: quiet}), small, 1)
	text, err := os.ReadFile(at(root, 1, manifestName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeManifest(text); err != nil {
		t.Fatal(err)
	}
	for i := range text {
		if _, err := decodeManifest(text[:i]); err == nil && i < len(text)-1 {
			t.Fatalf("cut at byte %d of %d: accepted", i, len(text))
		}
		changed := bytes.Clone(text)
		changed[i] ^= 1 << rand.IntN(8)
		if _, err := decodeManifest(changed); err == nil && !sameJSON(changed, text) {
			t.Fatalf("byte %d changed from %q to %q: accepted", i, text[i], changed[i])
		}
	}
}

// sameJSON: the digits of the checksum may change their case.
func sameJSON(a, b []byte) bool { return bytes.EqualFold(a, b) }

func TestManifestRejectsInconsistencies(t *testing.T) {
	root := t.TempDir()
	mustSave(t, mustOpen(t, root, Options{Log: quiet}), small, 1)
	for name, change := range map[string]func(*manifest){
		"file name with a path":   func(m *manifest) { m.Files[0].Name = "../model.safetensors" },
		"hidden file name":        func(m *manifest) { m.Files[0].Name = ".." },
		"manifest lists itself":   func(m *manifest) { m.Files[0].Name = manifestName },
		"file twice":              func(m *manifest) { m.Files[0].Name = m.Files[1].Name },
		"negative size":           func(m *manifest) { m.Files[0].Size = -1 },
		"too few checksums":       func(m *manifest) { m.Files[0].CRC32C = nil },
		"huge size":               func(m *manifest) { m.Files[0].Size = 1 << 62 },
		"no state":                func(m *manifest) { m.Files = m.Files[:2] },
		"other chunks":            func(m *manifest) { m.ChunkBytes = 1 },
		"negative step":           func(m *manifest) { m.Step = -1 },
		"tensor in no file":       func(m *manifest) { alter(m, func(e *piece) { e.File = "x.safetensors" }) },
		"tensor in the state":     func(m *manifest) { alter(m, func(e *piece) { e.File = stateName; e.Offset = 0 }) },
		"tensor past the end":     func(m *manifest) { alter(m, func(e *piece) { e.Offset += 1 << 40 }) },
		"tensor before the start": func(m *manifest) { alter(m, func(e *piece) { e.Offset = -64 }) },
		"tensor of another size":  func(m *manifest) { alter(m, func(e *piece) { e.Size-- }) },
		"negative dimension":      func(m *manifest) { alterTensor(m, func(e *tensorEntry) { e.Shape[0] = -4 }) },
		"unknown dtype":           func(m *manifest) { alterTensor(m, func(e *tensorEntry) { e.DType = "F31" }) },
		"overlap":                 func(m *manifest) { alter(m, func(e *piece) { e.Offset -= 8 }) },
	} {
		e, err := find(root, 1)
		if err != nil {
			t.Fatal(err)
		}
		change(e.manifest)
		text, err := e.manifest.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func alter(m *manifest, change func(*piece)) { change(&m.Tensors["layer.norm"].Pieces[0]) }

func alterTensor(m *manifest, change func(*tensorEntry)) {
	e := m.Tensors["layer.norm"]
	change(&e)
	m.Tensors["layer.norm"] = e
}

var crcDigits = regexp.MustCompile(`"manifest_crc32c": "[0-9a-f]{8}"`)

// FuzzManifest reads damaged manifests. It mends their checksum first, so that the checks behind it are reached. The
// decoder may allocate 128 bytes for each byte of input, and 256 KiB.
func FuzzManifest(f *testing.F) {
	m := manifest{
		Format: formatName, FormatVersion: formatVersion, ChunkBytes: chunkBytes, Step: 1,
		Files: []fileEntry{{modelFile, 96, "00", []checksum{1}}, {stateName, 2, "00", []checksum{2}}},
		Tensors: map[string]tensorEntry{
			"a": {DType: "F32", Shape: []int{2}, place: place{modelFile, 72, 8, 3}},
			"b": {DType: "U8", Shape: []int{2, 4}, Pieces: []piece{
				{place{modelFile, 80, 6, 4}, Region{Box: Box{[]int{0, 0}, []int{2, 3}}}},
				{place{modelFile, 86, 1, 5}, Region{Box{[]int{0, 3}, []int{2, 1}}, 0, 1}},
				{place{modelFile, 87, 1, 6}, Region{Box{[]int{0, 3}, []int{2, 1}}, 1, 2}},
			}},
		},
	}
	text, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, edits []byte) {
		text := filetest.Edit(t, text, edits)
		if loc := crcDigits.FindIndex(text); loc != nil {
			var plain manifest
			if json.Unmarshal(text, &plain) == nil {
				if mended, err := plain.encode(); err == nil {
					text = mended
				}
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := decodeManifest(text)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(128*len(text)+256<<10); got > limit {
			t.Errorf("%d bytes allocated for %d bytes of manifest, the ceiling is %d", got, len(text), limit)
		}
		if err != nil {
			return
		}
		for name, ten := range m.Tensors {
			for _, p := range ten.Pieces {
				i := slices.IndexFunc(m.Files, func(f fileEntry) bool { return f.Name == p.File })
				if i < 0 || p.Offset < 0 || p.Offset+p.Size > m.Files[i].Size {
					t.Errorf("tensor %q lies outside of its file", name)
				}
			}
			if volume(ten.Shape) < 4096 && !coveredOnce(ten) {
				t.Errorf("tensor %q is not covered once by its pieces", name)
			}
		}
	})
}

// verifyStep checks the newest checkpoint of one step.
func verifyStep(root string, step int64) error {
	e, err := find(root, step)
	if err == nil {
		_, err = e.verify(root)
	}
	return err
}

// Step 0 cannot be asked for by its number, which stands for the newest: it is not advised.
func TestOlderErrorsAdviseNoStepZero(t *testing.T) {
	for step, want := range map[int64]bool{0: false, 15: true} {
		text := (&OlderError{Root: "run", Info: Info{Name: "step", Step: step}}).Error()
		if got := strings.Contains(text, "--init-step"); got != want || !strings.Contains(text, "--allow-older") {
			t.Errorf("step %d: %s", step, text)
		}
	}
}
