package run

import (
	"path/filepath"

	"anneal/config"
	"anneal/sinks"
	"anneal/train"
)

// openSinks opens the sinks, which receive the figures of the run outside of its directory. From then on they also
// receive every warning, except those about sinks.
func (s *session) openSinks() error {
	files, err := s.dir.readFiles()
	if err != nil {
		return err
	}
	shown, values := s.cfg.Shown(), map[string]string{}
	for _, k := range config.Keys() {
		values[k.Name], _ = shown.Value(k.Name)
	}
	memory := map[string]int64{}
	for _, a := range s.trainer.Arenas() {
		memory[a.Name()] += int64(a.Size())
	}
	warn, at, reached := s.Warn, s.trainer.Position(), 0
	if s.cfg.Log.Sinks.Has(config.Prometheus) {
		if reached, err = lastLogged(s.dir.metrics()); err != nil {
			return err
		}
	}
	s.sinks, err = sinks.Open(sinks.Options{
		Log: s.cfg.Log, Dir: s.Dir, Name: Name(s.Dir), ID: files.run(), Step: at.Step, Tokens: at.Tokens,
		Config: string(shown.YAML()), Values: values, Family: s.cfg.Model.Family,
		Parameters: s.trainer.Outline().Count(), Memory: memory, Checkpoint: s.bytes,
		Begun: s.started, Restarts: s.restarts, Reached: reached, Kept: s.kept, Warn: warn,
	})
	s.Warn = func(text string) {
		warn(text)
		s.alert("warning", text)
	}
	return err
}

// Name is the last part of a run's directory.
func Name(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return filepath.Base(dir)
}

// tellSinks passes a step on to the sinks.
func (s *session) tellSinks(e train.Event) {
	x := sinks.Step{Event: e, Took: s.clock.step}
	for p, spent := range s.phases.spent {
		x.Phases[p] = max(spent-s.toldPhases[p], 0) // the sum does not include the first step of a process
	}
	s.toldPhases = s.phases.spent
	s.sinks.Step(x)
}

// alert passes an urgent message on to the sinks.
func (s *session) alert(kind, text string) {
	if s.sinks != nil && s.world.leads() {
		s.sinks.Alert(sinks.Alert{Kind: kind, Step: int(s.journal.step.Load()), Text: text})
	}
}
