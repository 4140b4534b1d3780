package synth

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// All sums modulo p are there once, in one split or the other, and right.
func TestModularHasEverySumOnce(t *testing.T) {
	text, err := Modular{P: 7, Fraction: 0.4, Seed: 1}.Text()
	if err != nil || len(text.Train) != 20 || len(text.Val) != 29 {
		t.Fatalf("%d and %d of 49 sums: %v", len(text.Train), len(text.Val), err)
	}
	all := slices.Concat(text.Train, text.Val)
	for _, s := range all {
		if len(s) != 4 || (s[0]-'0'+s[1]-'0')%7 != s[3]-'0' {
			t.Errorf("%q is wrong", s)
		}
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 49 {
		t.Error("a sum is there twice")
	}
	other, _ := Modular{P: 7, Fraction: 0.4, Seed: 2}.Text()
	if slices.Equal(other.Train, text.Train) {
		t.Error("another seed has the same split")
	}
	for _, bad := range []Modular{
		{P: 1, Fraction: 0.5}, {P: 63, Fraction: 0.5}, {P: 7}, {P: 7, Fraction: 1}, {P: 7, Fraction: -1},
	} {
		if _, err := bad.Text(); err == nil {
			t.Errorf("%+v made a text", bad)
		}
	}
}

func TestFactsHaveKeysOfTheirOwn(t *testing.T) {
	text, err := Facts{Facts: 3844, Seed: 1}.Text()
	if err != nil || len(text.Val) != 0 {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, s := range text.Train {
		if len(s) != 3+FactDigits || s[2] != '=' {
			t.Errorf("%q is no fact", s)
		}
		keys[s[:2]] = true
	}
	if len(keys) != 3844 {
		t.Errorf("%d keys of 3,844 facts", len(keys))
	}
	for _, n := range []int{0, 3845} {
		if _, err := (Facts{Facts: n}).Text(); err == nil {
			t.Errorf("%d facts made a text", n)
		}
	}
}

func TestAdditionIsRight(t *testing.T) {
	for _, c := range []struct {
		Addition
		x, y int
		want string
	}{
		{Addition{Digits: 3}, 123, 456, "123+456=9750"},
		{Addition{Digits: 3}, 999, 1, "999+001=0001"},
		{Addition{Digits: 3, Modulo: true}, 999, 1, "999+001=000"},
		{Addition{Digits: 3, Modulo: true, Subtract: true}, 1, 2, "001-002=999"},
		{Addition{Digits: 3, Scratchpad: true}, 123, 459, "123+459=3921;2580;1450;" + "2850"},
	} {
		text := c.Prompt(c.x, c.y) + c.Answer(c.x, c.y)
		if text != c.want {
			t.Errorf("%q, want %q", text, c.want)
		}
		last := text[len(text)-1]
		wrong := text[:len(text)-1] + string((last-'0'+1)%10+'0')
		if !c.Right(text) || c.Right(wrong) || c.Right(text+"1") || c.Right("") || c.Right("x+y=1") {
			t.Errorf("%q is right: %v; %q: %v", text, c.Right(text), wrong, c.Right(wrong))
		}
	}
	steps := Addition{Digits: 3, Scratchpad: true}
	if !steps.Right("123+459=nonsense;2850") || steps.Right("123+459=3921;2580;1450;2851") {
		t.Error("only the answer counts")
	}
	text, err := Addition{Digits: 2, Train: 9000, Val: 1000, Seed: 3}.Text()
	all := slices.Concat(text.Train, text.Val)
	slices.Sort(all)
	if err != nil || len(text.Train) != 9000 || len(slices.Compact(all)) != 10000 {
		t.Errorf("%d examples: %v", len(text.Train), err)
	}
	for _, s := range text.Val {
		if !(Addition{Digits: 2}).Right(s) || strings.Count(s, "=") != 1 {
			t.Errorf("%q is wrong", s)
		}
	}
	for _, bad := range []Addition{
		{Train: 1}, {Digits: 7, Train: 1}, {Digits: 2}, {Digits: 2, Train: 9999, Val: 2},
		{Digits: 2, Train: 1, Val: -1},
		{Digits: 2, Train: 1, Subtract: true}, {Digits: 2, Train: 1, Subtract: true, Modulo: true, Scratchpad: true},
	} {
		if _, err := bad.Text(); err == nil {
			t.Errorf("%+v made a text", bad)
		}
	}
}

// Questions are of held-out documents where there are any, each once, and only of those with a prompt.
func TestItemsAreWhatIsHeldOut(t *testing.T) {
	held := Text{Train: []string{"a=1"}, Val: []string{"b=2=3", "none", "b=2=3", "c="}, PromptEnd: "="}
	if got := held.Items(); !slices.Equal(got, []Item{{"b=", "2=3"}}) {
		t.Errorf("%v", got)
	}
	all := Text{Train: []string{"a=1", "d=4"}, PromptEnd: "="}
	if got := all.Items(); !slices.Equal(got, []Item{{"a=", "1"}, {"d=", "4"}}) {
		t.Errorf("%v", got)
	}
	if n, err := (Text{Train: []string{"a=1"}}).WriteTasks(filepath.Join(t.TempDir(), "tasks")); n != 0 || err != nil {
		t.Errorf("%d items of a text without prompts, %v", n, err)
	}
	facts, err := Facts{Facts: 1000, Seed: 3}.Text()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tasks")
	if n, err := facts.WriteTasks(dir); n != mostItems || err != nil {
		t.Errorf("%d items, %v", n, err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "answers.jsonl"))
	if err != nil || bytes.Count(lines, []byte("\n")) != mostItems {
		t.Errorf("%d lines, %v", bytes.Count(lines, []byte("\n")), err)
	}
}
