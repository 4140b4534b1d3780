package lab

import (
	"slices"
	"strings"
	"testing"
)

func TestQuestionsAreLinesOrObjects(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Question
	}{
		{"q.txt", "1+1=\r\n\n2+2= \n", []Question{{Prompt: "1+1="}, {Prompt: "2+2= "}}},
		{"q.txt", "\ufeff1+1=\n\ufeff2+2=", []Question{{Prompt: "1+1="}, {Prompt: "\ufeff2+2="}}},
		{"q.jsonl", "\ufeff" + `{"prompt": "a"}`, []Question{{Prompt: "a"}}},
		{"q.txt", `{"prompt": "a"}`, []Question{{Prompt: `{"prompt": "a"}`}}},
		{"q.jsonl", `{"prompt": "a\nb"}` + "\n" + `{"prompt": "c", "hint": "d"}`,
			[]Question{{Prompt: "a\nb"}, {Prompt: "c", Hint: "d"}}},
	} {
		if got, err := ReadQuestions(c.name, []byte(c.text)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s %q: %v, %v", c.name, c.text, got, err)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"q.txt", "\n\n", "no prompts"}, {"q.jsonl", "{}", "line 1"},
		{"q.jsonl", "{\"prompt\": \"a\"}\n\nplain", "line 3"},
	} {
		if _, err := ReadQuestions(c.name, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v", c.name, c.text, err)
		}
	}
}
