package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"anneal/dedup"
	"anneal/internal/machine"
	"anneal/tokenizer"
)

// smallMachine makes commands believe that bytes of memory are available.
func smallMachine(t *testing.T, bytes int64) {
	before := availableMemory
	availableMemory = func() int64 { return bytes }
	t.Cleanup(func() { availableMemory = before })
}

// Data commands that do not fit refuse with the exit code of resources, and name the memory needed, the memory
// available, and the flag that changes the need.
func TestDataCommandsRefuseWhatDoesNotFit(t *testing.T) {
	w := sharedInput(t)
	write(t, w.path("p.yaml"), "stages: [normalize, {dedup: {ngrams: true, ngram_mib: 512}}]\n")
	write(t, w.path("plain.yaml"), "stages: [normalize]\n")
	write(t, w.path("dedup.yaml"), "stages: [normalize, dedup]\n")
	dedup := []string{"data", "dedup", w.path("crawl"), "--threads", "2", "--out", w.path("o")}
	train := []string{"tokenizer", "train", "--vocab", "300", "--out", w.path("t.json"), w.path("crawl")}
	curate := []string{"data", "curate", "--threads", "2", "--out", w.path("c")}
	for _, c := range []struct {
		available int64 // MiB
		args      []string
		want      []string
	}{
		{200, append(dedup, "--ngrams"), []string{"needs 344 MiB of memory, but 200 MiB are available",
			"the filter of n-grams 256 MiB (--bloom)", "a smaller --bloom"}},
		{1000, append(dedup, "--memory", "4GiB"),
			[]string{"but 1000 MiB are available", "sorting 4.00 GiB (--memory)", "a smaller --memory"}},
		{70, dedup, []string{"its workers 32 MiB (--threads)", "sorting 16 MiB (--memory)"}},
		{50, train, []string{"needs 64 MiB of memory, but 50 MiB are available"}},
		{500, append(train, "--memory", "1GiB"),
			[]string{"needs 1.00 GiB of memory, but 500 MiB", "a smaller --memory"}},
		{300, append(curate, w.path("p.yaml"), w.path("crawl")),
			[]string{"needs 632 MiB", "the filter of n-grams 512 MiB (ngram_mib of dedup)"}},
		{90, append(curate, w.path("plain.yaml"), w.path("crawl")),
			[]string{"needs 104 MiB", "its workers 64 MiB (--threads)"}},
		{300, append(curate, "--memory", "2GiB", w.path("p.yaml"), w.path("crawl")), []string{"needs 2.00 GiB"}},
	} {
		smallMachine(t, c.available<<20)
		code, _, errs := anneal(c.args...)
		if code != exitResources {
			t.Errorf("%v with %d MiB: exit %d, want %d\n%s", c.args, c.available, code, exitResources, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%v with %d MiB: no %q in\n%s", c.args, c.available, want, errs)
			}
		}
	}
	for want, args := range map[string][]string{
		"--memory 20 MiB is too little: at least the process 40 MiB, its workers 64 MiB, sorting 16 MiB\n" +
			"  try --memory 121MiB": append(curate, "--memory", "20MiB", w.path("dedup.yaml"), w.path("crawl")),
		"--memory 5.0 MiB is too little\n  try --memory 256MiB": append(train, "--memory", "5MiB"),
	} {
		smallMachine(t, 8<<30)
		if code, _, errs := anneal(args...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, no %q in\n%s", args, code, want, errs)
		}
	}
}

// On a machine where they just fit, data commands do the same as on a large one.
func TestDataCommandsTakeNoMoreThanIsAvailable(t *testing.T) {
	w := sharedInput(t)
	write(t, w.path("p.yaml"), "stages: [normalize, dedup]\n")
	results := map[int64][]any{}
	for _, available := range []int64{130, 1 << 20, 0} { // MiB; 0 is unknown
		smallMachine(t, available<<20)
		name := func(what string) string { return w.path(fmt.Sprint(what, available)) }
		d := w.object(exitOK, "data", "dedup", w.path("crawl"), "--threads", "2", "--ngrams", "--bloom", "16MiB",
			"--out", name("d"))
		k := w.object(exitOK, "tokenizer", "train", "--vocab", "300", "--out", name("t"), w.path("crawl"))
		c := w.object(exitOK, "data", "curate", "--threads", "2", w.path("p.yaml"), w.path("crawl"), "--out", name("c"))
		results[available] = []any{d["dedup"], k["hash"], c["report"]}
	}
	for available, r := range results {
		if fmt.Sprint(r) != fmt.Sprint(results[0]) {
			t.Errorf("with %d MiB available:\n%.2000v\nwith any:\n%.2000v", available, r, results[0])
		}
	}
	var small, large dataDedupCmd
	small.Threads, large.Threads = 2, 2
	if sorting, heap, err := small.plan(100 << 20); err != nil || sorting != dedup.LeastSorting || heap > 100<<20 {
		t.Errorf("of 100 MiB %d are for sorting, %d for the heap, %v", sorting>>20, heap>>20, err)
	}
	if sorting, _, err := large.plan(64 << 30); err != nil || sorting != dedup.CommonSorting {
		t.Errorf("of 64 GiB %d MiB are for sorting, %v", sorting>>20, err)
	}
}

// By default no word is dropped for lack of memory, because the vocabulary would then depend on the machine.
func TestAutomaticMemoryLeavesNoWordOut(t *testing.T) {
	w := workshop{t, t.TempDir()}
	var text strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for text.Len() < 24<<20 {
		fmt.Fprintf(&text, "%x ", r.Uint64())
	}
	write(t, w.path("words.txt"), text.String())
	smallMachine(t, 74<<20)
	train := []string{
		"tokenizer", "train", "--vocab", "300", "--pattern", `\S+|\s`, "--out", w.path("t.json"), w.path("words.txt"),
	}
	code, _, errs := anneal(train...)
	if code != exitResources || !strings.Contains(errs, "distinct words") ||
		!strings.Contains(errs, "74 MiB are available") ||
		!strings.Contains(errs, "try --memory SIZE, which drops the rarest words") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	var c learnFlags
	err := c.teachMemory(fmt.Errorf("learn: %w", &tokenizer.MemoryError{Words: 1234567, Have: 48 << 20, Need: 3 << 30}))
	if room := (*machine.RoomError)(nil); !errors.As(err, &room) || room.Need() < 4<<30 {
		t.Errorf("%v", err)
	}
}
