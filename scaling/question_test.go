package scaling

import (
	"errors"
	"testing"
)

// Whatever is asked of a model, the answer is that model.
func TestQuestionsOfOneModel(t *testing.T) {
	law := Besiroglu
	m := law.Optimum(1e21)
	over := law.Model(1e9, 3e11)
	for q, want := range map[Question]Model{
		{FLOPs: m.FLOPs}: m, {Params: m.Params}: m, {Tokens: m.Tokens}: m, {Loss: m.Loss}: m,
		{Params: over.Params, Tokens: over.Tokens}: over, {Params: over.Params, FLOPs: over.FLOPs}: over,
		{Tokens: over.Tokens, FLOPs: over.FLOPs}: over, {Params: over.Params, Loss: over.Loss}: over,
		{Tokens: over.Tokens, Loss: over.Loss}: over,
		{FLOPs: m.FLOPs, Unique: 1e30}:         m,
	} {
		got, err := law.Answer(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
		}
		close(t, "N", got.Params, want.Params, 1e-9)
		close(t, "D", got.Tokens, want.Tokens, 1e-9)
		close(t, "C", got.FLOPs, want.FLOPs, 1e-9)
		close(t, "L", got.Loss, want.Loss, 1e-9)
	}
	steep := Law{E: 1, A: 1, B: 1, Alpha: 4.5, Beta: 0.37} // an optimum for that size has endless tokens
	if m, err := steep.Answer(Question{Params: 1e30}); err != ErrTooFar {
		t.Errorf("%+v, %v", m, err)
	}
	for _, q := range []Question{{FLOPs: 1}, {Loss: 1e6}, {Params: 1e9, FLOPs: 1e9}} {
		if m, err := law.Answer(q); !errors.Is(err, ErrTooSmall) {
			t.Errorf("%+v: %+v, %v, want no model of less than a parameter and a token", q, m, err)
		}
	}
	for q, want := range map[Question]error{
		{}: ErrNoQuestion, {Unique: 1e9}: ErrNoQuestion, {Params: 1, Tokens: 1, Loss: 1}: ErrOverdefined,
		{FLOPs: 1, Loss: 1}: ErrTwoModels, {Loss: 1, Unique: 1}: ErrRepeatedLoss,
		{Params: 1, Unique: 1}: ErrRepeatedLoss,
	} {
		if _, err := law.Answer(q); err != want {
			t.Errorf("%+v: %v, want %v", q, err, want)
		}
	}
}
