package model

import (
	"slices"
	"testing"

	"anneal/device/cpu"

	"pgregory.net/rapid"
)

func TestGuessesFollowTheLongestAndLastMatch(t *testing.T) {
	for _, c := range []struct {
		name string
		ids  []int32
		most int
		want []int32
	}{
		{"nothing stood before", []int32{1, 2, 3, 4}, 7, nil},
		{"what followed", []int32{1, 2, 3, 4, 5, 1, 2}, 7, []int32{3, 4, 5}},
		{"one token is a match", []int32{1, 2, 3, 1}, 7, []int32{2, 3, 1}},
		{"at most", []int32{1, 2, 3, 4, 5, 1, 2}, 2, []int32{3, 4}},
		{"no room", []int32{1, 2, 3, 4, 5, 1, 2}, 0, nil},
		{"the last place", []int32{1, 2, 3, 9, 1, 2, 4, 9, 1, 2}, 1, []int32{4}},
		{"the longest match", []int32{7, 1, 2, 3, 9, 1, 2, 4, 7, 1, 2}, 1, []int32{3}},
		{"more than is compared", []int32{5, 6, 7, 1, 2, 3, 0, 8, 6, 7, 1, 2, 4, 5, 6, 7, 1, 2}, 1, []int32{4}},
		{"a repetition goes on", []int32{9, 1, 2, 1, 2}, 7, []int32{1, 2, 1}},
		{"one token, over and over", []int32{4, 4, 4}, 7, []int32{4, 4, 4}},
		{"a text of one token", []int32{4}, 7, nil},
	} {
		got := new(Guesser).Append(slices.Clone(c.ids), c.most)
		if want := slices.Concat(c.ids, c.want); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}

// After wrong guesses more tokens must be the same, and after a right one a single token is enough again.
func TestGuessesAskForMoreWhileTheyAreWrong(t *testing.T) {
	var g Guesser
	guesses := func(same int32) bool { // the last so many tokens stood before
		ids := []int32{1, 2, 3, 4, 9, 0}
		ids = append(ids, ids[4-same:4]...)
		return len(g.Append(slices.Clone(ids), 1)) > len(ids)
	}
	for same := range int32(longestTail) {
		for range patience {
			if guesses(same) || !guesses(same+1) {
				t.Fatalf("after %d wrong guesses: not as soon as %d tokens are the same", g.wrong, same+1)
			}
			g.Right(0)
		}
	}
	if g.Right(0); guesses(3) || !guesses(4) {
		t.Error("more than four tokens are asked for")
	}
	if g.Right(1); !guesses(1) {
		t.Error("a right guess is not forgiven")
	}
}

// Drawing with guesses makes the tokens that are made one by one without a cache, in every kind of model and cache,
// also when it begins again and where the text outgrows the context. Some of the guesses are right.
func TestGuessesChangeNoToken(t *testing.T) {
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, policy := range []string{"bf16", "fp32", "fp8 mx"} {
		right := 0
		t.Run(policy, rapid.MakeCheck(func(t *rapid.T) {
			c := drawDecoder(t)
			cached, plain := twins(t, dev, c, policy)
			defer cached.Close()
			defer plain.Close()
			prompt := rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 30).Draw(t, "prompt")
			s := Sampling{Temperature: rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "temperature"), Seed: 3}
			s.Repetition = rapid.SampledFrom([]float64{1, 0.7}).Draw(t, "repetition") // 0.7 asks for it
			for range 2 {
				ids, most := slices.Clone(prompt), rapid.IntRange(1, 80).Draw(t, "most")
				for len(ids) < len(prompt)+most {
					drawn := cached.Draw(ids, s, len(prompt)+most-len(ids))
					for _, id := range drawn {
						if want := plain.Next(ids, s); id != want {
							t.Fatalf("%+v: token %d is %d, one by one %d", c, len(ids), id, want)
						}
						ids = append(ids, id)
					}
					right += len(drawn) - 1
				}
				if len(ids) != len(prompt)+most {
					t.Fatalf("%d tokens, not %d", len(ids)-len(prompt), most)
				}
			}
		}))
		if right == 0 {
			t.Errorf("%s: no guess was right", policy)
		}
	}
}
