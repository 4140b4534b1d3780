package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func numbered(n int) []Tensor {
	var tensors []Tensor
	for i := range n {
		data := slices.Repeat([]byte{byte(i)}, 10)
		tensors = append(tensors, fromBytes(fmt.Sprintf("t%d", i), U8, []int{10}, data))
	}
	return tensors
}

func TestShardsHoldEveryTensorWithinTheLimit(t *testing.T) {
	for _, c := range []struct {
		limit int64
		files []string
	}{
		{100, []string{"model.safetensors"}},
		{50, []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", indexName}},
		{1, []string{"model-00001-of-00010.safetensors", "model-00010-of-00010.safetensors", indexName}},
	} {
		dir := t.TempDir()
		if err := WriteDir(dir, numbered(10), c.limit); err != nil {
			t.Fatal(err)
		}
		for _, name := range c.files {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("limit %d: %v", c.limit, err)
			}
		}
		s, err := OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if len(s.Tensors()) != 10 {
			t.Errorf("limit %d: %d tensors, want 10", c.limit, len(s.Tensors()))
		}
		for i := range 10 {
			var p [10]byte
			if err := s.ReadAt(fmt.Sprintf("t%d", i), p[:], 0); err != nil || p[9] != byte(i) {
				t.Errorf("limit %d: t%d = %v, %v", c.limit, i, p, err)
			}
		}
	}
}

// A directory never holds weights in both forms.
func TestWeightsInTwoFormsAreRefused(t *testing.T) {
	for _, limits := range [][2]int64{{10, 1 << 20}, {1 << 20, 10}} {
		dir := t.TempDir()
		if err := WriteDir(dir, numbered(10), limits[0]); err != nil {
			t.Fatal(err)
		}
		if err := WriteDir(dir, numbered(10), limits[1]); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("shards of %d and then %d bytes: %v", limits[0], limits[1], err)
		}
		s, err := OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

// A directory without weights, or with those of another format alone, is an error that says what is read.
func TestWeightsOfAnotherFormatAreNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pytorch_model.bin"), []byte("PK"), 0o666); err != nil {
		t.Fatal(err)
	}
	const want = "it has neither model.safetensors nor model.safetensors.index.json"
	if _, err := OpenDir(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want one that says %q", err, want)
	}
}

func TestIndexCannotLeaveTheDirectory(t *testing.T) {
	outside := t.TempDir()
	if err := WriteFile(filepath.Join(outside, "secret.safetensors"), numbered(1), nil); err != nil {
		t.Fatal(err)
	}
	for _, shard := range []string{
		"../secret.safetensors", outside + "/secret.safetensors", "a/../../secret.safetensors", "..", "",
		".safetensors/x", `..\\secret.safetensors`, "secret.bin", "s\\u0000.safetensors", "link.safetensors",
	} {
		dir := t.TempDir()
		if err := os.Symlink(filepath.Join(outside, "secret.safetensors"),
			filepath.Join(dir, "link.safetensors")); err != nil {
			t.Fatal(err)
		}
		index := fmt.Sprintf(`{"weight_map":{"t0":"%s"}}`, shard)
		if err := os.WriteFile(filepath.Join(dir, indexName), []byte(index), 0o644); err != nil {
			t.Fatal(err)
		}
		if s, err := OpenDir(dir); err == nil {
			s.Close()
			t.Errorf("shard name %q was opened", shard)
		} else if shard == "link.safetensors" && !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("error %q does not say why", err)
		}
	}
}

// The snapshots of Hugging Face's cache are links to blobs of the same model: those are followed, and no others.
func TestLinksWithinACachedModelAreFollowed(t *testing.T) {
	cache := t.TempDir()
	model := filepath.Join(cache, "models--who--what")
	blobs, snapshot := filepath.Join(model, "blobs"), filepath.Join(model, "snapshots", "0a1b2c")
	for _, dir := range []string{blobs, snapshot, filepath.Join(cache, "models--who--else")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteFile(filepath.Join(blobs, "77e1"), numbered(3), nil); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(cache, "models--who--else", "77e1"), numbered(3), nil); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(snapshot, singleName)
	current := filepath.Join(t.TempDir(), "current") // people link to snapshots, too
	if err := os.Symlink(snapshot, current); err != nil {
		t.Fatal(err)
	}
	for target, followed := range map[string]bool{
		"../../blobs/77e1": true, "../../../models--who--else/77e1": false, filepath.Join(blobs, "77e1"): false,
		"/etc/passwd": false,
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{snapshot, current} {
			s, err := OpenDir(dir)
			switch {
			case err == nil && len(s.Tensors()) != 3:
				t.Errorf("a link to %s: %d tensors", target, len(s.Tensors()))
			case (err == nil) != followed:
				t.Errorf("a link to %s: %v", target, err)
			}
			if err == nil {
				s.Close()
			}
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIndexAndShardsMustAgree(t *testing.T) {
	const a, b = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	for name, c := range map[string]struct{ index, want string }{
		"listed but absent":  {`{"weight_map":{"t0":"A","t1":"B","t2":"B"}}`, `"t2"`},
		"in the wrong shard": {`{"weight_map":{"t0":"B","t1":"A"}}`, "does not contain it"},
		"present, unlisted":  {`{"weight_map":{"t0":"A","t1":"B","u":"B"}}`, `"u"`},
		"shard unlisted":     {`{"weight_map":{"t1":"B"}}`, ""},
		"missing shard":      {`{"weight_map":{"t0":"A","t1":"c.safetensors"}}`, "c.safetensors"},
		"duplicate key":      {`{"weight_map":{"t0":"A","t0":"A","t1":"B"}}`, "twice"},
		"no map":             {`{"metadata":{}}`, "no weight_map"},
		"not JSON":           {`{"weight_map":`, "JSON"},
	} {
		dir := t.TempDir()
		two := numbered(2)
		if err := WriteDir(dir, two, 10); err != nil {
			t.Fatal(err)
		}
		index := strings.NewReplacer(`"A"`, `"`+a+`"`, `"B"`, `"`+b+`"`).Replace(c.index)
		if err := os.WriteFile(filepath.Join(dir, indexName), []byte(index), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := OpenDir(dir)
		if c.want == "" { // a stray file that the index does not mention is not part of the model
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if _, ok := s.Lookup("t0"); ok {
				t.Errorf("%s: the stray shard was opened", name)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}

func TestSameTensorInTwoShards(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.safetensors", "b.safetensors"} {
		if err := WriteFile(filepath.Join(dir, name), numbered(2), nil); err != nil {
			t.Fatal(err)
		}
	}
	index := `{"weight_map":{"t0":"a.safetensors","t1":"b.safetensors"}}`
	if err := os.WriteFile(filepath.Join(dir, indexName), []byte(index), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(dir); err == nil || !strings.Contains(err.Error(), "another shard") {
		t.Errorf("error = %v, want one about another shard", err)
	}
}

// FuzzIndex: the parser may allocate 48 bytes for each byte of the index, and 64 KiB.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":1},"weight_map":{"a":"model.safetensors"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := parseIndex(b)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(48*len(b)+64<<10); got > limit {
			t.Errorf("%d bytes allocated for an index of %d, the ceiling is %d", got, len(b), limit)
		}
		if err == nil && m == nil {
			t.Error("neither a map nor an error")
		}
	})
}
