package use

import (
	"context"
	"errors"
	"testing"

	"anneal/config"
	"anneal/gguf"
	"anneal/safetensors"
	"anneal/tasks"
)

// After Close the weights are no longer in memory: reading them would end the process, so every method refuses.
func TestAClosedModelRefusesToBeUsed(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.NewText()
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := r.NewScheduler(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Add(&Sequence{IDs: []int32{1}, MaxTokens: 3}); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r.Close()
	ctx, o := t.Context(), GenerateOptions{Prompt: "the", MaxTokens: 2}
	for name, use := range map[string]func() error{
		"Generate":       func() error { _, err := r.Generate(ctx, o, nil); return err },
		"GenerateMany":   func() error { _, err := r.GenerateMany(ctx, []string{"a"}, o, nil); return err },
		"Score":          func() error { _, err := r.Score(ctx, "the"); return err },
		"Evaluate":       func() error { _, err := r.Evaluate(ctx, r.Config.Data.Path, 0, nil); return err },
		"DocumentLosses": func() error { _, err := r.DocumentLosses(ctx, r.Config.Data.Path, nil); return err },
		"Ask":            func() error { _, err := r.Ask(ctx, &tasks.Exam{}, tasks.Options{}); return err },
		"ExportHF":       func() error { _, err := r.ExportHF(t.TempDir(), safetensors.F32); return err },
		"ExportGGUF":     func() error { _, err := r.ExportGGUF(t.TempDir()+"/m.gguf", gguf.F32); return err },
		"ExportPEFT":     func() error { _, err := r.ExportPEFT(t.TempDir(), safetensors.F32); return err },
		"WriteAs":        func() error { _, err := r.WriteAs(t.TempDir()+"/copy", "test"); return err },
		"NewText":        func() error { _, err := r.NewText(); return err },
		"NewScheduler":   func() error { _, err := r.NewScheduler(1); return err },
		"Continue":       func() error { _, err := text.Continue(ctx, o, nil); return err },
		"Step":           func() error { _, err := scheduler.Step(); return err },
		"Add":            func() error { return scheduler.Add(&Sequence{IDs: []int32{1}}) },
	} {
		if err := use(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	text.Close()
	scheduler.Close()
	if n := r.FreeMemory(); n != 0 {
		t.Errorf("%d bytes of a closed device are free", n)
	}
}

func TestClosedTextsAndSchedulersRefuseToBeUsed(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.NewText()
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := r.NewScheduler(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		text.Close()
		scheduler.Close()
	}
	o := GenerateOptions{Prompt: "a", MaxTokens: 1}
	if _, err := text.Continue(t.Context(), o, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a text: %v", err)
	}
	if _, err := scheduler.Step(); !errors.Is(err, ErrClosed) {
		t.Errorf("a scheduler: %v", err)
	}
	if all, cache := scheduler.Bytes(); all != 0 || cache != 0 {
		t.Errorf("a closed scheduler has %d and %d bytes", all, cache)
	}
}

// An evaluation of nothing, or of fewer tokens than none, is not one of everything.
func TestEvaluationsOfNothingAreErrors(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "no source", evaluated(r, nil, 0), "name at least one source")
	wantError(t, "a negative limit", evaluated(r, []config.Source{{Path: r.Config.Data.Path}}, -5), "try 0 for all")
}

func evaluated(r *Trained, sources []config.Source, limit int) error {
	_, err := r.EvaluateSources(context.Background(), sources, limit, nil)
	return err
}
