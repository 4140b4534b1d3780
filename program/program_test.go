package program

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "anneal/internal/torture"
)

// each calls f with every schedule of up to 8 stages, 17 micro-batches and 4 chunks.
func each(t *testing.T, f func(t *testing.T, name string, lists [][]Instr, chunks, micro int)) {
	for stages := 1; stages <= 8; stages++ {
		for micro := 1; micro <= 17; micro++ {
			names := []string{"gpipe", "1f1b", "zb-h1"}
			if micro%stages == 0 {
				names = append(names, "interleaved:1", "interleaved:2", "interleaved:3", "interleaved:4")
			}
			for _, name := range names {
				s, err := Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				lists, err := s.Make(stages, micro)
				if err != nil {
					t.Fatal(err)
				}
				f(t, fmt.Sprintf("%s of %d stages and %d micro-batches", name, stages, micro), lists, s.Chunks, micro)
			}
		}
	}
}

func TestEveryScheduleIsSound(t *testing.T) {
	each(t, func(t *testing.T, name string, lists [][]Instr, chunks, micro int) {
		if err := Check(lists, chunks); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		computed := 0
		for _, list := range lists {
			for _, i := range list {
				if i.Op == Forward {
					computed++
				}
			}
		}
		if want := len(lists) * chunks * micro; computed != want {
			t.Errorf("%s computes %d parts forward, want %d", name, computed, want)
		}
	})
}

func TestAListWithoutOneInstructionIsRefused(t *testing.T) {
	each(t, func(t *testing.T, name string, lists [][]Instr, chunks, micro int) {
		if micro > 8 {
			return
		}
		s := rand.IntN(len(lists))
		whole := lists[s]
		for k := range whole {
			lists[s] = slices.Delete(slices.Clone(whole), k, k+1)
			if Check(lists, chunks) == nil {
				t.Fatalf("%s: stage %d without instruction %d, %v, is accepted", name, s, k, whole[k])
			}
		}
	})
}

func TestAListWithTwoSendsSwappedIsRefused(t *testing.T) {
	each(t, func(t *testing.T, name string, lists [][]Instr, chunks, micro int) {
		s := rand.IntN(len(lists))
		var sends []int
		for k, i := range lists[s] {
			if i.Op.Sends() {
				sends = append(sends, k)
			}
		}
		for n := 1; n < len(sends); n++ {
			a, b := sends[rand.IntN(n)], sends[n]
			lists[s][a], lists[s][b] = lists[s][b], lists[s][a]
			if Check(lists, chunks) == nil {
				t.Fatalf("%s: stage %d with sends %d and %d swapped is accepted", name, s, a, b)
			}
			lists[s][a], lists[s][b] = lists[s][b], lists[s][a]
		}
	})
}

// Goroutines with unbuffered channels, one for each direction between two stages, follow the lists to their end and
// receive what their lists say.
func TestSchedulesRunWithRendezvous(t *testing.T) {
	each(t, func(t *testing.T, name string, lists [][]Instr, chunks, micro int) {
		stages := len(lists)
		channels := make([]chan Instr, stages*stages)
		for i := range channels {
			channels[i] = make(chan Instr)
		}
		var all sync.WaitGroup
		for s, list := range lists {
			all.Go(func() {
				for _, i := range list {
					if !i.Op.Message() {
						continue
					}
					peer, there := i.Peer(s, stages)
					if i.Op.Sends() {
						channels[s*stages+peer] <- i
					} else if got := <-channels[peer*stages+s]; got != there {
						t.Errorf("%s: stage %d received %v from %d, want %v", name, s, got, peer, there)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestSimulationHasTheTimesOfTheFormulas(t *testing.T) {
	for _, c := range []struct {
		name                    string
		stages, micro           int
		forward, input, weights float64
		total                   float64
		peak                    []int
	}{
		{"gpipe", 4, 8, 1, 1, 1, 33, []int{8, 8, 8, 8}},
		{"1f1b", 4, 8, 1, 1, 1, 33, []int{4, 3, 2, 1}},
		{"interleaved:2", 4, 8, 1, 1, 1, 28.5, []int{11, 9, 7, 5}},
		{"interleaved:4", 4, 8, 1, 1, 1, 26.25, nil},
		{"gpipe", 8, 32, 1, 1, 1, 117, nil},
		{"1f1b", 8, 32, 1, 1, 1, 117, nil},
		{"interleaved:2", 8, 32, 1, 1, 1, 106.5, nil},
		{"interleaved:4", 8, 32, 1, 1, 1, 101.25, nil},
		{"gpipe", 4, 4, 1, 1, 1, 21, nil},
		{"1f1b", 4, 4, 1, 1, 1, 21, nil},
		{"interleaved:2", 4, 4, 1, 1, 1, 16.5, nil},
		{"interleaved:4", 4, 4, 1, 1, 1, 14.25, nil},
		{"zb-h1", 4, 8, 1, 1, 1, 27, []int{4, 4, 4, 4}},
		{"zb-h1", 8, 32, 1, 1, 1, 103, []int{8, 8, 8, 8, 8, 8, 8, 8}},
		{"zb-h1", 4, 4, 1, 1, 1, 15, nil},
	} {
		s, _ := Parse(c.name)
		lists, err := s.Make(c.stages, c.micro)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Simulate(lists, Even(c.stages, s.Chunks, c.forward, c.input, c.weights))
		if err != nil {
			t.Fatal(err)
		}
		if got.Total != c.total {
			t.Errorf("%s, %d stages, %d micro-batches takes %v, want %v", c.name, c.stages, c.micro, got.Total, c.total)
		}
		if c.peak != nil && !slices.Equal(got.Peak, c.peak) {
			t.Errorf("%s of %d stages, %d micro-batches keeps %v, want %v", c.name, c.stages, c.micro, got.Peak, c.peak)
		}
	}
}

func TestInterleavedPeakIsThatOfTheLists(t *testing.T) {
	for stages := 1; stages <= 8; stages++ {
		for chunks := 1; chunks <= 4; chunks++ {
			for micro := 1; micro <= 3*stages+2; micro++ {
				lists, err := Schedule{Name: "interleaved", Chunks: chunks}.Fit(stages, micro)
				if err != nil {
					t.Fatal(err)
				}
				line, err := Simulate(Late(lists), Even(stages, chunks, 1, 1, 1))
				if err != nil {
					t.Fatal(err)
				}
				for stage, want := range line.Peak {
					if got := InterleavedPeak(stages, chunks, micro, stage); got != want {
						t.Errorf("stage %d of %d, %d chunks, %d micro-batches: %d, want %d",
							stage, stages, chunks, micro, got, want)
					}
				}
			}
		}
	}
}

// Three outputs are ready after 1, 2 and 3; the link takes 5 for each, one after the other.
func TestALinkCarriesOneMessageAtATime(t *testing.T) {
	s, err := Parse("gpipe")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := s.Make(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	costs := Even(2, 1, 1, 1, 0)
	costs.Messages = []float64{5, 5}
	line, err := Simulate(lists, costs)
	if err != nil {
		t.Fatal(err)
	}
	var starts []float64
	for k, i := range lists[1] {
		if i.Op == Forward {
			starts = append(starts, line.Spans[1][k].Start)
		}
	}
	if want := []float64{6, 11, 16}; !slices.Equal(starts, want) {
		t.Errorf("the second stage begins its forward passes at %v, want %v", starts, want)
	}
}

func TestWhatIsNotAScheduleIsRefused(t *testing.T) {
	for _, name := range []string{"", "1F1B", "interleaved", "interleaved:0", "interleaved:-2", "interleaved:x"} {
		if s, err := Parse(name); err == nil {
			t.Errorf("%q is read as %v", name, s)
		}
	}
	if _, err := (Schedule{"interleaved", 2}).Make(4, 6); err == nil || !strings.Contains(err.Error(), "multiple of") {
		t.Errorf("6 micro-batches on 4 interleaved stages: %v", err)
	}
	if _, err := (Schedule{"1f1b", 1}).Make(0, 6); err == nil {
		t.Error("a pipeline without stages is made")
	}
}

func TestSchedulesFitAnyNumberOfMicroBatches(t *testing.T) {
	for stages := 1; stages <= 8; stages++ {
		for micro := 1; micro <= 17; micro++ {
			lists, err := Schedule{"interleaved", 3}.Fit(stages, micro)
			if err == nil {
				err = Check(lists, 3)
			}
			if err != nil {
				t.Errorf("%d micro-batches on %d stages: %v", micro, stages, err)
			}
		}
	}
}

// Sizes that no pipeline has are an error, not a division by zero or empty lists.
func TestInterleavedNeedsStagesChunksAndMicroBatches(t *testing.T) {
	for _, n := range [][3]int{{0, 2, 2}, {2, 0, 2}, {2, 2, 0}, {-1, 2, 2}} {
		if lists, err := Interleaved(n[0], n[1], n[2]); err == nil {
			t.Errorf("%v: %v", n, lists)
		}
	}
	if lists, err := (Schedule{}).Make(2, 2); err == nil {
		t.Errorf("a schedule without a name: %v", lists)
	}
}
