package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

// oneShard builds a dataset of one training shard and returns the path of the shard.
func oneShard(t testing.TB, docs []string) (d *Dataset, path string) {
	t.Helper()
	d = build(t, docs, BuildOptions{})
	return d, filepath.Join(d.Dir, "train", "00000.tokens")
}

func rewrite(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The shard of two documents, assembled here from the table in the package comment.
func TestShardBytesAreAsDocumented(t *testing.T) {
	_, path := oneShard(t, []string{"ab", "c"})
	le := binary.LittleEndian
	want := make([]byte, 4096)
	copy(want, "\x93ANNEAL\n")
	le.PutUint32(want[8:], 1)
	le.PutUint32(want[12:], 2)
	le.PutUint64(want[16:], 257)
	le.PutUint64(want[24:], 256)
	copy(want[32:], byteTokenizer.SHA256[:])
	for i, v := range []uint64{5, 2, 3, 4096, 4096 + 64, 4096 + 64 + 16, 4096 + 64 + 16 + 4} {
		le.PutUint64(want[64+8*i:], v)
	}
	le.PutUint32(want[120:], 1<<20)
	block := make([]byte, 64)
	for i, id := range []uint16{256, 'a', 'b', 256, 'c'} {
		le.PutUint16(block[2*i:], id)
	}
	block = le.AppendUint64(le.AppendUint64(block, 3), 5)
	table := le.AppendUint32(nil, crc32.Checksum(block, castagnoli))
	le.PutUint32(want[124:], crc32.Checksum(table, castagnoli))
	le.PutUint32(want[4092:], crc32.Checksum(want[:4092], castagnoli))
	want = append(append(want, block...), table...)
	got, err := os.ReadFile(path)
	if err != nil || string(got) != string(want) {
		t.Errorf("got %d bytes, %v\n%s\nwant %d bytes\n%s", len(got), err, hex.Dump(got), len(want), hex.Dump(want))
	}
}

// Any changed bit is found by Open or Verify, which name the shard, and no changed token is ever read.
func TestEveryFlippedBitIsFound(t *testing.T) {
	d, path := oneShard(t, randomDocs(1, 3000, 800)) // 2.3 MB: three blocks
	info, err := os.Stat(path)
	if err != nil || info.Size() < 2<<20 {
		t.Fatalf("the shard has only %d bytes", info.Size())
	}
	r := rand.New(rand.NewPCG(7, 7))
	places := []int64{0, 8, 12, 16, 24, 40, 64, 72, 80, 96, 120, 124, 130, 4095, 4096, 4096 + 1<<20, info.Size() - 1}
	for range 30 {
		places = append(places, r.Int64N(info.Size()))
	}
	for _, at := range places {
		bit := byte(1) << r.IntN(8)
		flip := func(b []byte) []byte { b[at] ^= bit; return b }
		rewrite(t, path, flip)
		found, err := Open(d.Dir)
		if err == nil {
			if at < headerSize+int64(2*found.train.tokens) { // in the payload: reading the tokens must find it too
				if err := found.train.read(make([]uint32, found.train.tokens), 0, &scratch{}); err == nil {
					t.Errorf("byte %d, bit %08b: changed tokens were read", at, bit)
				}
			}
			err = found.Verify()
			found.Close()
		}
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "anneal data build") {
			t.Errorf("byte %d, bit %08b: error is %v, it should name %s", at, bit, err, path)
		}
		rewrite(t, path, flip)
	}
}

func TestTruncatedShardIsRefused(t *testing.T) {
	d, path := oneShard(t, randomDocs(2, 50, 100))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 4095, 4096, 5000, len(whole) - 1, len(whole) + 1} {
		rewrite(t, path, func([]byte) []byte {
			return append(whole[:min(n, len(whole)):len(whole)], make([]byte, max(0, n-len(whole)))...)
		})
		if _, err := Open(d.Dir); err == nil || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), "anneal data build") {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	os.Remove(path)
	if _, err := Open(d.Dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("missing shard: %v", err)
	}
}

// A file that shrinks while it is open gives an error, not a signal.
func TestShardTruncatedWhileOpen(t *testing.T) {
	d, path := oneShard(t, randomDocs(3, 4000, 800))
	l, err := d.TrainLoader(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if err := l.Batch(&b, 0, int(l.Windows())); err != nil { // every block is checked now
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	err = l.Batch(&b, 0, int(l.Windows()))
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("reading a truncated file: %v", err)
	}
}

// forge writes a shard whose checksums are right but whose content need not be.
func forge(t testing.TB, path string, h header, tokens []uint32, ends []uint64) {
	t.Helper()
	w, err := createShard(path, h.tokenizer, h.prompts)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.append(tokens); err != nil {
		t.Fatal(err)
	}
	for _, e := range ends {
		w.ends = binary.LittleEndian.AppendUint64(w.ends, e)
	}
	w.h.tokens, w.h.docs = uint64(len(tokens)), uint64(len(ends))
	if _, err := w.finish(); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyFindsWhatChecksumsDoNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "00000.tokens")
	h := header{tokenBytes: 2, tokenizer: byteTokenizer}
	for name, c := range map[string]struct {
		tokens []uint32
		ends   []uint64
		want   string
	}{
		"good":                  {[]uint32{256, 1, 2, 256, 3}, []uint64{3, 5}, ""},
		"id out of range":       {[]uint32{256, 1, 300, 256, 3}, []uint64{3, 5}, "token 2 has id 300"},
		"no EOT at the start":   {[]uint32{1, 1, 2, 256, 3}, []uint64{3, 5}, "token 0"},
		"EOT inside":            {[]uint32{256, 256, 2, 256, 3}, []uint64{3, 5}, "token 1"},
		"end before the start":  {[]uint32{256, 1, 2, 256, 3}, []uint64{0, 5}, "ends at 0"},
		"end beyond the tokens": {[]uint32{256, 1, 2, 4, 3}, []uint64{6}, "ends at 6 of 5"},
		"ends too early":        {[]uint32{256, 1, 2, 256, 3}, []uint64{3, 4}, "token 4"},
		"more documents":        {[]uint32{256, 1, 2, 256, 3}, []uint64{3, 5, 5}, "3 entries"},
	} {
		forge(t, path, h, c.tokens, c.ends)
		s, err := openShard(path)
		if err != nil {
			t.Fatal(err)
		}
		err = s.verify(&scratch{})
		s.f.Close()
		if (err == nil) != (c.want == "") ||
			err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// Reading refuses the id too, before anything indexes with it.
	forge(t, path, h, []uint32{256, 1, 300}, []uint64{3})
	s, err := openShard(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.f.Close()
	if err := s.read(make([]uint32, 2), 1, &scratch{}); err == nil ||
		!strings.Contains(err.Error(), "token 2 has id 300") {
		t.Errorf("reading id 300 of 257: %v", err)
	}
}

func TestAnotherTokenizerIsRefusedNamingBoth(t *testing.T) {
	d, path := oneShard(t, []string{"one", "two"})
	if err := d.RequireTokenizer(byteTokenizer); err != nil {
		t.Error(err)
	}
	other := byteTokenizer
	other.SHA256[0] ^= 1
	larger := byteTokenizer
	larger.Vocab++
	for _, tok := range []Tokenizer{other, larger} {
		err := d.RequireTokenizer(tok)
		if err == nil {
			t.Fatal("accepted")
		}
		for _, part := range []string{
			hex.EncodeToString(tok.SHA256[:]), d.Manifest.Tokenizer.SHA256, "vocabulary 257", d.Dir,
		} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %s", err, part)
			}
		}
	}
	// A shard from a build with another tokenizer, put in place of the right one.
	forge(t, path, header{tokenBytes: 2, tokenizer: other}, []uint32{256, 1}, []uint64{2})
	_, err := Open(d.Dir)
	if err == nil || !strings.Contains(err.Error(), hex.EncodeToString(other.SHA256[:])) ||
		!strings.Contains(err.Error(), d.Manifest.Tokenizer.SHA256) || !strings.Contains(err.Error(), path) {
		t.Errorf("foreign shard: %v", err)
	}
}

func TestManifestIsChecked(t *testing.T) {
	d, _ := oneShard(t, []string{"one", "two"})
	path := filepath.Join(d.Dir, manifestName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`"path": "train/00000.tokens"`, `"path": "../train/00000.tokens"`},
		{`"path": "train/00000.tokens"`, `"path": "/etc/passwd"`},
		{`"version": 1`, `"version": 2`}, {`"anneal-dataset"`, `"other"`}, {`"documents": 2`, `"documents": 3`},
		{d.Manifest.Tokenizer.SHA256, "short"}, {`"eot": 256`, `"eot": 257`}, {`"eot": 256`, `"eot": 255`},
		{`"vocab_size": 257`, `"vocab_size": -1`}, {"{", ""},
	} {
		bad := strings.Replace(string(good), c[0], c[1], 1)
		if bad == string(good) {
			t.Fatalf("%s is not in the manifest", c[0])
		}
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(d.Dir); err == nil || !strings.Contains(err.Error(), d.Dir) {
			t.Errorf("%s → %s: %v", c[0], c[1], err)
		}
	}
}

// A manifest whose key of a split is damaged is refused: without it the split would pass for an empty one.
func TestManifestWithoutASplitIsRefused(t *testing.T) {
	for _, key := range []string{"train", "val"} {
		d, _ := oneShard(t, []string{"one", "two"})
		rewrite(t, filepath.Join(d.Dir, manifestName), func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"`+key+`":`), []byte(`"x`+key[1:]+`":`), 1)
		})
		if _, err := Open(d.Dir); err == nil || !strings.Contains(err.Error(), "no train or no val") {
			t.Errorf("without %s: %v", key, err)
		}
	}
}

// FuzzShard opens and verifies damaged shards: no panic, and no allocation that the size of the file does not justify.
// The input edits the head and the body of a good file, and cuts it to size; seal sets the checksums right, so that
// the checks behind them are reached.
func FuzzShard(f *testing.F) {
	_, path := oneShard(f, []string{"ab", "c"})
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	path = filepath.Join(filetest.MemoryDir(f), "shard")
	f.Add([]byte{}, []byte{}, len(good), true)
	f.Add([]byte{}, []byte{}, len(good), false)
	f.Add([]byte{}, []byte{}, 100, false)
	f.Fuzz(func(t *testing.T, head, body []byte, size int, seal bool) {
		content := make([]byte, headerSize)
		copy(content, filetest.Edit(t, good[:128], head))
		content = append(content, filetest.Edit(t, good[headerSize:], body)...)
		if end := len(content) - 4; seal && end >= headerSize {
			binary.LittleEndian.PutUint32(content[end:], crc32.Checksum(content[headerSize:end], castagnoli))
			binary.LittleEndian.PutUint32(content[124:], crc32.Checksum(content[end:], castagnoli))
		}
		if seal {
			binary.LittleEndian.PutUint32(content[headerSize-4:], crc32.Checksum(content[:headerSize-4], castagnoli))
		}
		content = content[:min(len(content), max(size, 0))]
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := openShard(path)
		if err == nil {
			err = s.verify(&scratch{})
			s.f.Close()
		}
		runtime.ReadMemStats(&after)
		if got, ceiling := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+8*len(content)); got > ceiling {
			t.Errorf("%d bytes: allocated %d, ceiling %d", len(content), got, ceiling)
		}
		if err == nil && s.h.tokens*2 > uint64(len(content)) {
			t.Errorf("%d tokens accepted in %d bytes", s.h.tokens, len(content))
		}
	})
}

// FuzzManifest parses damaged manifests: no panic, and what is accepted stays inside the directory.
func FuzzManifest(f *testing.F) {
	d, _ := oneShard(f, []string{"one", "two"})
	good, err := os.ReadFile(filepath.Join(d.Dir, manifestName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, edits []byte) {
		b := filetest.Edit(t, good, edits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := parseManifest(b)
		runtime.ReadMemStats(&after)
		if got, ceiling := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+64*len(b)); got > ceiling {
			t.Errorf("%d bytes: allocated %d, ceiling %d", len(b), got, ceiling)
		}
		for _, s := range append(m.Train.Shards, m.Val.Shards...) {
			if err == nil && !filepath.IsLocal(s.Path) {
				t.Errorf("path %q accepted", s.Path)
			}
		}
	})
}
