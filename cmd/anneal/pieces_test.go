package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anneal/checkpoint"
	"anneal/safetensors"
)

// Commands give the same results for a run whose checkpoints several ranks wrote as for one whose checkpoints one rank
// wrote.
func TestCommandsReadCheckpointsInPieces(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "train", w.path("run.yaml"), "optimizer.name=adam8bit", "average.ema=0.5", "--out", w.path("run"))
	whole, pieces := w.copyOf(w.path("run")), w.copyOf(w.path("run"))
	w.inPieces(pieces, 3)
	if files, _ := filepath.Glob(filepath.Join(pieces, "checkpoints/step-00000020/*")); len(files) != 11 {
		t.Fatalf("the checkpoint has %v, want three files of three ranks, the state and the manifest", files)
	}
	both := func(key string, args func(dir, out string) []string) {
		t.Helper()
		out := w.path("made")
		want := w.object(exitOK, args(whole, out+"-"+args("", "")[0]+"-a")...)[key]
		got := w.object(exitOK, args(pieces, out+"-"+args("", "")[0]+"-b")...)[key]
		if want == nil || got != want {
			t.Errorf("%v: %s is %v of pieces, %v of whole tensors", args("RUN", "OUT"), key, got, want)
		}
	}
	both("ok", func(dir, _ string) []string { return []string{"ckpt", "verify", dir} })
	for _, key := range []string{"weights_hash", "optimizer_hash", "step"} {
		both(key, func(dir, _ string) []string { return []string{"ckpt", "hash", dir} })
	}
	for _, weights := range []string{"last", "ema"} {
		both("loss", func(dir, _ string) []string {
			return []string{"eval", dir, "--data", w.path("data"), "--weights", weights}
		})
	}
	both("text", func(dir, _ string) []string {
		return []string{"generate", dir, "--prompt", "func", "--max-tokens", "8", "--temperature", "0"}
	})
	both("max_logit_difference", func(dir, out string) []string { return []string{"export", dir, out} })
	both("weights_hash", func(dir, out string) []string {
		return []string{"ckpt", "average", dir, "--last", "2", "--out", out}
	})
	both("weights_hash", func(dir, out string) []string {
		return []string{"train", w.path("run.yaml"), "--init-from", dir, "--init-step", "15", "train.steps=2",
			"--out", out}
	})
	both("weights_hash", func(dir, out string) []string {
		return []string{"branch", dir, "--at", "10", "train.steps=12", "--out", out}
	})

	// Merged checkpoints are the files that one rank writes.
	merged := func(unchanged bool, args ...string) {
		t.Helper()
		v := w.object(exitOK, append([]string{"ckpt", "merge", pieces}, args...)...)
		w.keys(v, "checkpoint", "step", "bytes", "seconds")
		if v["unchanged"] != unchanged {
			t.Errorf("merging says %v", v)
		}
		for _, file := range []string{"model.safetensors", "optim.safetensors", "average.safetensors", "state.json"} {
			got, err := os.ReadFile(filepath.Join(v["checkpoint"].(string), file))
			want, err2 := os.ReadFile(filepath.Join(whole, "checkpoints/step-00000020", file))
			if err := errors.Join(err, err2); err != nil || !bytes.Equal(got, want) {
				t.Errorf("merged, %s differs; %v", file, err)
			}
		}
	}
	merged(false, "--out", w.path("merged"))
	w.object(exitUsage, "ckpt", "merge", pieces, "--out", w.path("merged"))
	w.object(exitCheckpoint, "ckpt", "merge", pieces, "--step", "7", "--out", w.path("other"))
	merged(false)
	merged(true, "--step", "20")

	both("step", func(dir, _ string) []string { return []string{"rewind", dir, "--to", "10"} })
	both("weights_hash", func(dir, _ string) []string { return []string{"resume", dir} })
	both("ok", func(dir, _ string) []string { return []string{"ckpt", "verify", dir} })
}

// inPieces rewrites the checkpoints of a run as several ranks write them, each of which owns a range of every tensor's
// elements.
func (w workshop) inPieces(run string, ranks int) {
	w.t.Helper()
	root, old := filepath.Join(run, "checkpoints"), filepath.Join(w.t.TempDir(), "old")
	err := os.Rename(root, old)
	entries, err2 := checkpoint.List(old)
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	store, err := checkpoint.Open(root, checkpoint.Options{Keep: 99, Together: true, Origin: entries[0].Origin})
	if err != nil {
		w.t.Fatal(err)
	}
	defer store.Close()
	slices.Reverse(entries)
	for _, e := range entries {
		from := filepath.Join(old, e.Name)
		state, err := os.ReadFile(filepath.Join(from, "state.json"))
		if err != nil {
			w.t.Fatal(err)
		}
		dir, err := store.Begin(e.Step, e.Tokens, json.RawMessage(state))
		if err != nil {
			w.t.Fatal(err)
		}
		for rank := range ranks {
			part := checkpoint.Writer{Root: root, Number: rank}
			if err := errors.Join(part.Write(dir, w.owned(from, rank, ranks)), part.Close()); err != nil {
				w.t.Fatal(err)
			}
		}
		if err := errors.Join(store.Commit(ranks), store.Wait()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// owned reads the elements that a rank owns of the tensors of a checkpoint.
func (w workshop) owned(dir string, rank, ranks int) (list []checkpoint.Tensor) {
	w.t.Helper()
	for _, kind := range []string{"model", "optim", "average"} {
		f, err := safetensors.Open(filepath.Join(dir, kind+".safetensors"))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, info := range f.Tensors() {
			n := int64(1)
			for _, dim := range info.Shape {
				n *= int64(dim)
			}
			from, to := n*int64(rank)/int64(ranks), n*int64(rank+1)/int64(ranks)
			x := checkpoint.Tensor{
				Name: info.Name, DType: string(info.DType), Shape: info.Shape,
				Data: make([]byte, (to-from)*info.Size/n), Region: checkpoint.Region{From: from, To: to},
				Optim: kind == "optim", Average: kind == "average",
			}
			if from == to {
				continue
			}
			if err := f.ReadAt(info.Name, x.Data, from*info.Size/n); err != nil {
				w.t.Fatal(err)
			}
			list = append(list, x)
		}
		f.Close()
	}
	return list
}
