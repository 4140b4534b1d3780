package dedup

import (
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// otherToolchain is the version of Go whose library is mixed with that of the toolchain in use.
const otherToolchain = "golang.org/toolchain@v0.0.1-go1.25.4"

// otherLibrary finds it in the module cache, without fetching it.
func otherLibrary(t *testing.T) string {
	module := otherToolchain + "." + runtime.GOOS + "-" + runtime.GOARCH
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Env = append(os.Environ(), "GOPROXY=off")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var m struct{ Dir string }
	if err != nil || json.Unmarshal(out, &m) != nil || m.Dir == "" {
		t.Skipf("another version of Go is not here; for this test run: go mod download %s", module)
	}
	return filepath.Join(m.Dir, "src")
}

// On two versions of the Go standard library mixed together, files of one path are found as often as the formula says
// for their true similarities, within 2 %, and what is dropped is like what is kept.
func TestRecallOnTwoVersionsOfTheLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 140 MB")
	}
	roots := []string{filepath.Join(goroot(t), "src"), otherLibrary(t)}
	cfg := MinHash{}.withDefaults()
	s, err := cfg.NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	near, err := NewNear(cfg, 64<<20, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	var sets [][]uint32
	var keys [][]uint64
	paths := map[string]int{} // of the first version
	var twins []Pair          // documents of one path
	size := 0
	for version, root := range roots {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			size += len(text)
			n := len(sets)
			keys = append(keys, append([]uint64(nil), s.Keys(text)...))
			sets = append(sets, append([]uint32(nil), setOf(s.Grams(text))...))
			name, _ := filepath.Rel(root, path)
			if version == 0 {
				paths[name] = n
			} else if first, ok := paths[name]; ok {
				twins = append(twins, Pair{uint64(first), uint64(n)})
			}
			return near.Add(uint64(n), keys[n])
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pairs := NewPairs(8<<20, t.TempDir())
	defer pairs.Close()
	if err := near.Link(pairs, 2); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d bytes, %d paths in both versions", len(sets), size, len(twins))

	// Recall among the twins, by similarity, against the formula.
	type bin struct{ pairs, found, want, variance float64 }
	bins := make([]bin, 11)
	var all bin
	for _, p := range twins {
		j := jaccard(sets[p.A], sets[p.B])
		want := 1 - math.Pow(1-math.Pow(j, float64(cfg.Rows)), float64(cfg.Bands))
		found := 0.0
		for i := range keys[p.A] {
			if keys[p.A][i] == keys[p.B][i] {
				found = 1
				break
			}
		}
		for _, b := range []*bin{&bins[int(j*10)], &all} {
			b.pairs, b.found, b.want, b.variance = b.pairs+1, b.found+found, b.want+want, b.variance+want*(1-want)
		}
	}
	for i, b := range bins {
		if b.pairs > 0 {
			t.Logf("similarity %.1f: %5.0f pairs, recall %.4f, formula %.4f",
				float64(i)/10, b.pairs, b.found/b.pairs, b.want/b.pairs)
		}
		if sigma := math.Sqrt(b.variance); math.Abs(b.found-b.want) > 3*sigma+1 {
			t.Errorf("similarity %.1f: %.0f of %.0f pairs found, formula %.1f ± %.1f",
				float64(i)/10, b.found, b.pairs, b.want, 3*sigma)
		}
	}
	t.Logf("all: recall %.4f, formula %.4f", all.found/all.pairs, all.want/all.pairs)
	if math.Abs(all.found-all.want) > 0.02*all.want {
		t.Errorf("%.0f pairs found, formula %.1f", all.found, all.want)
	}

	// Precision: candidates, and documents dropped beside the one that is kept.
	candidates, alike := 0, map[float64]int{}
	for p, err := range pairs.All() {
		if err != nil {
			t.Fatal(err)
		}
		candidates++
		count(alike, jaccard(sets[p.A], sets[p.B]))
	}
	c, err := NewClusters(pairs.All())
	if err != nil {
		t.Fatal(err)
	}
	dropped, like := 0, map[float64]int{}
	for n := range sets {
		if first, _ := c.Of(uint64(n)); first != uint64(n) {
			dropped++
			count(like, jaccard(sets[n], sets[first]))
		}
	}
	for _, s := range thresholds {
		t.Logf("similarity ≥ %.1f: %.4f of %d candidates, %.4f of %d dropped beside what is kept", s,
			float64(alike[s])/float64(candidates), candidates, float64(like[s])/float64(dropped), dropped)
	}
	if got := float64(alike[0.5]) / float64(candidates); got < 0.9 {
		t.Errorf("only %.3f of the candidates have similarity 0.5", got)
	}
}

var thresholds = []float64{0.5, 0.6, 0.7, 0.8}

func count(m map[float64]int, j float64) {
	for _, s := range thresholds {
		if j >= s {
			m[s]++
		}
	}
}
