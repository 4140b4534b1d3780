package plan

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/absent"
	"anneal/comm/local"
	"anneal/config"
	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/parallel"
	"anneal/tensor"
	"anneal/train"
)

// tally adds up what ranks receive, by the name of the exchange.
type tally struct {
	mu    sync.Mutex
	bytes map[string]int64
}

// listening is a group whose ranks tell a tally what comes.
type listening struct {
	comm.Comm
	heard *tally
}

func (l listening) Group(ranks []int) (comm.Comm, error) {
	g, err := l.Comm.Group(ranks)
	return listening{g, l.heard}, err
}

func (l listening) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	kind, _, _ := strings.Cut(name, " of ")
	return &heard{l.Comm.NewExchange(name, out, room), l, kind, 0}
}

type heard struct {
	comm.Transfer
	group   listening
	name    string
	senders int
}

func (h *heard) Start(senders int) {
	h.senders = senders
	h.Transfer.Start(senders)
}

func (h *heard) Wait() error {
	err := h.Transfer.Wait()
	for r := range h.senders {
		if err != nil || r == h.group.Rank() {
			continue
		}
		n := int64(0)
		for _, x := range h.From(r) {
			n += int64(x.Bytes())
		}
		h.group.heard.mu.Lock()
		h.group.heard.bytes[h.name] += n
		h.group.heard.mu.Unlock()
	}
	return err
}

// received returns what the ranks of a run receive in its first step.
func received(t *testing.T, cfg *config.Config) map[string]int64 {
	t.Helper()
	n := cfg.Parallel.Ranks
	worlds, errs := local.New(n, local.Options{Timeout: time.Minute}), make([]error, n)
	all := tally{bytes: map[string]int64{}}
	var group sync.WaitGroup
	for r := range n {
		group.Go(func() {
			if errs[r] = func() error {
				dev, err := cpu.New(1)
				if err != nil {
					return err
				}
				t.Cleanup(dev.Close) // peers read its memory
				x, err := train.NewRank(cfg, dev, listening{worlds[r], &all})
				if err != nil {
					return err
				}
				t.Cleanup(x.Close)
				_, err = x.Step(context.Background(), dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, 5))
				return err
			}(); errs[r] != nil {
				worlds[r].Abort(errs[r])
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.bytes
}

// What a plan says that ranks send is what arrives, to the byte.
func TestRanksSendWhatThePlanSays(t *testing.T) {
	for _, set := range []string{
		"parallel.tensor=2",
		"parallel.tensor=2 parallel.sequence=false model.family=gpt2 model.context=64",
		"parallel.tensor=4 model.kv_heads=2 precision=fp32 memory.recompute=every:1",
		"parallel.tensor=2 model.family=anneal",
		"parallel.context=2 model.attention=window:8,full",
		"parallel.context=4 parallel.attention=ulysses parallel.zero=1",
		"parallel.pipeline=2", "parallel.pipeline=2 parallel.schedule=interleaved:2 model.tie_embeddings=false",
		"parallel.pipeline=2 parallel.schedule=gpipe model.family=anneal",
		"parallel.ranks=4 parallel.zero=0", "parallel.ranks=4 parallel.zero=1 parallel.wire=bf16",
		"parallel.ranks=4 parallel.zero=2", "parallel.ranks=4 parallel.zero=3",
		"parallel.pipeline=2 parallel.ranks=4 parallel.zero=3",
		"parallel.pipeline=2 parallel.ranks=4 parallel.zero=3 model.tie_embeddings=false",
		"parallel.pipeline=2 parallel.ranks=4 parallel.zero=3 parallel.schedule=gpipe",
		"parallel.pipeline=2 parallel.ranks=4 parallel.zero=3 parallel.schedule=interleaved:2 train.micro_batch=1",
		"parallel.pipeline=4 parallel.ranks=8 parallel.zero=3 train.batch_tokens=2048",
		"parallel.tensor=2 parallel.pipeline=2 parallel.context=2 parallel.zero=1",
		"parallel.tensor=2 parallel.pipeline=2 parallel.ranks=8 parallel.zero=2",
	} {
		t.Run(set, func(t *testing.T) {
			cfg := load(t, append([]string{
				"model.layers=4", "model.dim=64", "model.heads=4", "model.ffn=128", "model.context=32",
				"model.vocab=512", "train.batch_tokens=512", "train.micro_batch=2",
			}, strings.Fields(set)...)...)
			var want Axes
			sizes := parallel.Sizes{
				Tensor: cfg.Parallel.Tensor, Context: cfg.Parallel.Context, Pipeline: cfg.Parallel.Pipeline,
			}
			for r := range cfg.Parallel.Ranks {
				f, err := train.MeasureRank(cfg, machine{}, absent.New(r, cfg.Parallel.Ranks, true))
				if err != nil {
					t.Fatal(err)
				}
				a, err := axes(cfg, f, sizes.At(r, cfg.Parallel.Ranks))
				if err != nil {
					t.Fatal(err)
				}
				want.Tensor, want.Context = want.Tensor+a.Tensor, want.Context+a.Context
				want.Pipeline, want.Gradients = want.Pipeline+a.Pipeline, want.Gradients+a.Gradients
				want.Weights += a.Weights
			}
			all := received(t, cfg)
			got := Axes{
				Tensor:    all["what ranks that share layers exchange"],
				Context:   all["what ranks that share rows exchange"],
				Pipeline:  all["the stream"] + all["the gradient"],
				Gradients: all["the gradients"] + all["the summed gradients"], Weights: all["the weights"],
			}
			if got != want {
				t.Errorf("%v arrive: %+v, the plan says %+v", all, got, want)
			}
		})
	}
}

// Every branch of a layer sends its rows twice forward and three times back, the embedding and the head's input once
// each way, and the loss two numbers a token; here all in FP32. Gains of norms are summed between two peers.
func TestTensorTrafficIsTheFormula(t *testing.T) {
	cfg := load(t, "model.layers=4", "model.dim=64", "model.heads=4", "model.ffn=128", "model.context=32",
		"model.vocab=512", "train.batch_tokens=128", "train.micro_batch=2", "precision=fp32", "parallel.tensor=2")
	f, err := train.MeasureRank(cfg, machine{}, absent.New(0, 2, true))
	if err != nil {
		t.Fatal(err)
	}
	const rows = 4 * 64 * 64 / 2 // bytes of half of N·D numbers
	const gains = 4 * 64 * (2*4 + 1)
	want := int64(rows*(5*2*4+2+2) + 2*4*64 + gains)
	if f.Sent.Tensor != want || f.Sent.Context != 0 {
		t.Errorf("a rank sends %+v with a micro-batch, want %d bytes", f.Sent, want)
	}
}

// Of many ranks not all are measured, but the fullest of each stage is among those that are.
func TestTheFullestOfManyRanksIsFound(t *testing.T) {
	for _, set := range [][]string{
		{"parallel.tensor=2", "parallel.pipeline=3", "parallel.zero=2"},
		{"parallel.pipeline=3", "parallel.zero=1", "optimizer.name=muon"},
		{"parallel.context=2", "parallel.tensor=4", "parallel.zero=3"},
	} {
		cfg := load(t, append([]string{
			"model.layers=6", "model.dim=64", "model.heads=4", "model.ffn=128", "model.context=32",
			"model.vocab=510", "train.batch_tokens=8192", "train.micro_batch=2", "parallel.ranks=144",
		}, set...)...)
		p, err := For(cfg, machine{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := footprints(cfg, machine{}, upTo(144), false)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range p.Ranks.Mesh {
			most := int64(0)
			for r := s.First; r <= s.Last; r++ {
				most = max(most, all[r].Total())
			}
			if got := s.Totals[cfg.Parallel.Zero]; most-got > 1024 || got > most {
				t.Errorf("%v, stage %d: the plan says %d bytes of rank %d, the fullest needs %d", set, i, got,
					s.Fullest, most)
			}
		}
	}
}
