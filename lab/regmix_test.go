package lab

import (
	"bytes"
	"encoding/json"
	"runtime"
	"slices"
	"testing"

	"anneal/config"
	"anneal/internal/filetest"
)

// FuzzProxies reads damaged journals of proxies: no panic, memory in proportion to the journal, and what is accepted
// is numbers for every source, the same after it is written and read again.
func FuzzProxies(f *testing.F) {
	cfg := config.Default()
	cfg.Resolve()
	header := proxyHeader{cfg, []MixtureSource{{Name: "a", Data: "1"}, {Name: "b", Data: "2"}}}
	journal := func(proxies []TrainedProxy) (text []byte) {
		head, err := json.Marshal(header)
		if err != nil {
			f.Fatal(err)
		}
		text = append(head, '\n')
		for _, p := range proxies {
			line, _ := json.Marshal(p)
			text = append(append(text, line...), '\n')
		}
		return text
	}
	good := journal([]TrainedProxy{{0, []float64{.25, .75}, []float64{1, 2}},
		{1, []float64{.5, .5}, []float64{1.5, 2}}})
	at := bytes.IndexByte(good, '\n') + 1
	f.Add([]byte{})
	f.Add(filetest.Splice(at, 0, "null\n"))
	f.Add(filetest.Splice(at, 1<<16-1, `{"proxy":0,"weights":[null,1],"bits_per_byte":[1,1]}`+"\n"))
	f.Fuzz(func(t *testing.T, edits []byte) {
		text := filetest.Edit(t, good, edits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		proxies, err := readProxies(text, "proxies.jsonl", header)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(256<<10+100*len(text)) {
			t.Fatalf("%d bytes allocate %d", len(text), n)
		}
		if err != nil {
			return
		}
		again, err := readProxies(journal(proxies), "proxies.jsonl", header)
		same := slices.EqualFunc(proxies, again, func(a, b TrainedProxy) bool {
			return a.Index == b.Index && slices.Equal(a.Weights, b.Weights) &&
				slices.Equal(a.BitsPerByte, b.BitsPerByte) && len(a.Weights) == 2 && len(a.BitsPerByte) == 2
		})
		if err != nil || !same {
			t.Fatalf("%s\nis read as %v, written and read again as %v, %v", text, proxies, again, err)
		}
	})
}
