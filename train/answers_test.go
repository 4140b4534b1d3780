package train

import "testing"

// Documents are EOT (9), a prompt of two tokens, and an answer; a model that is wrong about token 5 only.
func TestAnswersCountWholeDocuments(t *testing.T) {
	const end, none = 9, -100
	bytes := []int32{1, 1, 1, 1, 1, 1, 1, 1, 1, 0}
	for _, c := range []struct {
		name    string
		tokens  []uint32
		targets []int32
		want    Answers
	}{
		{"two whole ones, the second with an error", []uint32{9, 1, 2, 3, 4, 9, 1, 2, 5, 6},
			[]int32{none, none, 3, 4, 9, none, none, 5, 6, 9}, Answers{Targets: 4, Right: 3, Documents: 2, Exact: 1}},
		{"the end of the data", []uint32{9, 1, 2, 3, 4}, []int32{none, none, 3, 4, none},
			Answers{Targets: 2, Right: 2, Documents: 1, Exact: 1}},
		{"padding", []uint32{9, 1, 2, 3, 9, 9}, []int32{none, none, 3, none, none, none},
			Answers{Targets: 1, Right: 1, Documents: 1, Exact: 1}},
		{"the rest of one, and one that goes on", []uint32{3, 4, 9, 1, 2}, []int32{4, 9, none, none, 5},
			Answers{Targets: 2, Right: 1, Cut: 1}},
		{"one that is cut in its prompt", []uint32{9, 1}, []int32{none, none}, Answers{Cut: 1}},
		{"without prompts", []uint32{9, 3, 9, 5}, []int32{3, 9, 5, 9},
			Answers{Targets: 2, Right: 1, Documents: 2, Exact: 1}},
	} {
		var a Answers
		a.count(c.tokens, c.targets, func(i int) bool { return c.targets[i] != 5 }, bytes, end)
		if a != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, a, c.want)
		}
	}
}
