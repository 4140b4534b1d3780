package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/train/traintest"
)

// Ranks that would not make the same run with the same bits are named, with what to do.
func TestPeersThatDifferAreNamed(t *testing.T) {
	same := func() *peer {
		return &peer{"a", 1, "v1", "avx2", traintest.Config("data"), dataset.State{Data: "0123456789abcdef"}}
	}
	for name, c := range map[string]struct {
		change func(*peer)
		want   []string // nothing if they may differ so
	}{
		"nothing": {func(*peer) {}, nil},
		"version": {func(p *peer) { p.Version = "v2" }, []string{"v1", "v2", "the same binary"}},
		"kernels": {func(p *peer) { p.Kernels = "avx512" }, []string{"avx2", "avx512", "ANNEAL_CPU="}},
		"a key": {func(p *peer) { traintest.Override(p.Config, "optimizer.lr=0.5") },
			[]string{"optimizer.lr = 0.003", "0.5 on rank 3", "the same command"}},
		"a key of no bits": {func(p *peer) { traintest.Override(p.Config, "train.eval_every=7") },
			[]string{"train.eval_every"}},
		"threads":          {func(p *peer) { traintest.Override(p.Config, "threads=1") }, nil},
		"path of the data": {func(p *peer) { p.Config.Data.Path = "elsewhere" }, nil},
		"data": {func(p *peer) { p.Data.Data = "fedcba9876543210" },
			[]string{"0123456789ab…", "fedcba987654…"}},
	} {
		leader, other := same(), same()
		other.Host = "b"
		c.change(other)
		err := leader.check(other, 3)
		if err == nil {
			if c.want != nil {
				t.Errorf("%s: accepted", name)
			}
			continue
		}
		if c.want == nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range append(c.want, "rank 0 (a)", "rank 3 (b)", "try ") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// A rank that does not see the leader's directory says so; one that sees it late waits.
func TestTheRunDirectoryMustBeShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session")
	if err := os.WriteFile(path, []byte("of another run"), 0o666); err != nil {
		t.Fatal(err)
	}
	err := awaitFile(path, []byte("mark"), 10*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "share") {
		t.Errorf("another file: %v", err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		os.WriteFile(path, []byte("mark"), 0o666)
	}()
	if err := awaitFile(path, []byte("mark"), time.Minute); err != nil {
		t.Error(err)
	}
}

// Threads are shared out, one at least to each rank.
func TestThreadsAreSharedOut(t *testing.T) {
	for _, c := range []struct {
		ranks, threads int
		want           []int
	}{{1, 5, []int{5}}, {2, 5, []int{3, 2}}, {3, 3, []int{1, 1, 1}}, {4, 3, nil}} {
		got, err := shareThreads(c.ranks, c.threads)
		if len(got) != len(c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%d ranks, %d threads: %v, %v", c.ranks, c.threads, got, err)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%d ranks, %d threads: %v, want %v", c.ranks, c.threads, got, c.want)
			}
		}
		if err != nil && !strings.Contains(err.(config.Problem).Message, "parallel.ranks = 4") {
			t.Error(err)
		}
	}
}

// Ranks that a launcher started on one host share its cores.
func TestRanksOfAHostShareItsCores(t *testing.T) {
	for _, c := range [][3]int{{1, 8, 8}, {2, 8, 4}, {3, 8, 2}, {4, 4, 1}} {
		if got, err := threadsOf(c[0], c[1]); got != c[2] || err != nil {
			t.Errorf("%d ranks, %d cores: %d threads, %v; want %d", c[0], c[1], got, err, c[2])
		}
	}
	_, err := threadsOf(4, 2)
	if err == nil || !strings.Contains(err.Error(), "4 ranks share 2 cores") {
		t.Error(err)
	}
}
