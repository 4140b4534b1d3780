package model

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/filetest"
	"anneal/precision"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// written is a sequence that a Batcher runs.
type written struct {
	ids  []int32 // all of them
	done int
}

// Whatever else is in a pass, in however many passes a sequence is read and in whichever slot, and whatever was guessed
// to follow it: its logits are those of a generator that has only this sequence, bit for bit.
func TestLogitsOfABatchAreThoseOfEachAlone(t *testing.T) {
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, policy := range []string{"bf16", "fp32", "fp16", "fp8"} {
		t.Run(policy, rapid.MakeCheck(func(t *rapid.T) {
			c := drawDecoder(t)
			c.Context = max(c.Context, 2)
			_, plain := twins(t, dev, c, policy)
			defer plain.Close()
			slots := rapid.IntRange(1, 6).Draw(t, "slots")
			b, err := NewBatcher(plain.model, plain.policy, dev, slots, 64)
			if errors.Is(err, ErrNoCache) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			live := make([]*written, slots)
			for range rapid.IntRange(1, 8).Draw(t, "passes") {
				var list []Stretch
				room := b.Tokens()
				for slot := range live {
					if live[slot] == nil || live[slot].done == len(live[slot].ids) {
						live[slot] = drawSequence(t, c, live[slot])
						live[slot].done = b.Common(slot, live[slot].ids)
					}
					w := live[slot]
					n := rapid.OneOf(rapid.IntRange(0, 2), rapid.IntRange(0, 40)).Draw(t, "tokens")
					n = min(n, len(w.ids)-w.done, room)
					if n == 0 {
						continue
					}
					ids := w.ids[: w.done+n : w.done+n]
					most := min(rapid.IntRange(0, 12).Draw(t, "guesses"), c.Context-len(ids), room-n)
					more := b.Room(slot, len(ids), most)
					for range more {
						ids = append(ids, int32(rapid.IntRange(0, c.Vocab-1).Draw(t, "guess")))
					}
					room -= n + more
					list = append(list, Stretch{
						Slot: slot, IDs: ids, First: w.done, Logits: rapid.IntRange(0, n+more).Draw(t, "logits"),
					})
					w.done += n
				}
				if len(list) == 0 {
					continue
				}
				logits, row := b.Run(list), 0
				for _, s := range list {
					for i := range s.Logits {
						at := len(s.IDs) - s.Logits + i
						got, want := logits.Slice(row, row+1), plain.Logits(s.IDs[:at+1])
						if !bytes.Equal(got.Raw(), want.Raw()) {
							t.Fatalf("%s %+v: token %d in slot %d has other logits beside %d sequences than alone",
								policy, c, at, s.Slot, len(list)-1)
						}
						row++
					}
				}
			}
		}))
	}
}

// drawSequence draws a sequence that may begin like the one before.
func drawSequence(t *rapid.T, c Config, last *written) *written {
	w := &written{}
	if last != nil {
		w.ids = slices.Clone(last.ids[:rapid.IntRange(0, len(last.ids)).Draw(t, "kept")])
	}
	for range rapid.IntRange(1, max(c.Context-len(w.ids), 1)).Draw(t, "length") {
		w.ids = append(w.ids, int32(rapid.IntRange(0, c.Vocab-1).Draw(t, "token")))
	}
	w.ids = w.ids[:min(len(w.ids), c.Context)]
	return w
}

// What a Batcher foresees is what it uses, and a pass allocates little.
func TestABatcherUsesTheMemoryThatIsMeasured(t *testing.T) {
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	_, plain := twins(t, dev, small, "bf16")
	b, err := NewBatcher(plain.model, plain.policy, dev, 4, 32)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var list []Stretch
	for slot := range 4 {
		list = append(list, Stretch{Slot: slot, IDs: make([]int32, 8), Logits: 8})
	}
	b.Run(list)
	for _, a := range b.arenas {
		if a.Peak() != a.Size() && a.Size()-a.Peak() >= 4096 {
			t.Errorf("%s: %d bytes used of %d", a.Name(), a.Peak(), a.Size())
		}
	}
	if n := filetest.AllocsPerRun(3, func() { b.Run(list) }); n > 2 { // the batch
		t.Errorf("%v allocations per pass", n)
	}
}

// FP8 with scales of the tensor in hand makes the numbers of a token depend on its neighbours.
func TestABatcherRefusesScalesOfTheBatch(t *testing.T) {
	p, err := precision.Lookup("fp8")
	if err != nil {
		t.Fatal(err)
	}
	f := *p.FP8
	f.Delayed = false
	p.FP8 = &f
	params, err := tensor.NewArena("parameters", Measure(small, p, 1, 1, false).Params)
	if err != nil {
		t.Fatal(err)
	}
	defer params.Close()
	m := New(small, MemoryOf(device.Host{}, p, params, nil))
	if b, err := NewBatcher(m, p, nil, 1, 8); !errors.Is(err, ErrNoCache) {
		t.Errorf("a Batcher %v, error %v", b, err)
	}
}
