package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"anneal/dataset"
	"anneal/internal/nearest"
)

// maxSources limits the sources of a mix, because planning a block visits all of them for each sample.
const maxSources = 256

// Source is a data set that a run reads. Its name is for the user.
type Source struct {
	Name string
	Path string // its directory
}

var sourceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// ParseSource reads NAME=DIR, or only DIR; then the last part of DIR is the name.
func ParseSource(text string) (Source, error) {
	text = strings.TrimSpace(text)
	name, path, given := strings.Cut(text, "=")
	s := Source{strings.TrimSpace(name), strings.TrimSpace(path)}
	if !given {
		s = Source{filepath.Base(text), text}
	}
	if !sourceName.MatchString(s.Name) || s.Path == "" {
		return s, fmt.Errorf("%q is not NAME=DIR; a name has letters, digits, points and dashes, and DIR is the "+
			"directory of a data set", text)
	}
	return s, nil
}

// A Mix is several data sets that a run reads. Its text form is a list of NAME=DIR.
type Mix struct {
	written
	sources []Source
	err     error
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Mix) UnmarshalText(text []byte) error {
	*m = Mix{written: written(text)}
	if m.Given() {
		m.sources, m.err = ParseSources(string(text))
	}
	return nil
}

// mixOf returns the mix that a file with these sources gives. A path that the text form cannot represent is an error
// here, too.
func mixOf(list []Source) (m Mix) {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = s.Name + "=" + s.Path
	}
	m.UnmarshalText([]byte(strings.Join(parts, ", "))) // keeps its error
	return m
}

// Sources returns the data sets of the run: those of data.mix, or the one of data.path.
func (c *Config) Sources() ([]Source, error) {
	if !c.Data.Mix.Given() {
		return []Source{{filepath.Base(c.Data.Path), c.Data.Path}}, nil
	}
	return slices.Clone(c.Data.Mix.sources), c.Data.Mix.err
}

// ParseSources reads a list of NAME=DIR with commas between them.
func ParseSources(text string) (list []Source, err error) {
	for text := range strings.SplitSeq(text, ",") {
		s, err := ParseSource(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(o Source) bool { return o.Name == s.Name }) {
			return nil, fmt.Errorf("two sources have the name %q", s.Name)
		}
		list = append(list, s)
	}
	if len(list) > maxSources {
		return nil, fmt.Errorf("%d sources; at most %d are supported", len(list), maxSources)
	}
	return list, nil
}

// SetSources makes sources the data of the run.
func (c *Config) SetSources(list []Source) {
	if c.Data.Path, c.Data.Mix = "", (Mix{}); len(list) == 1 {
		c.Data.Path = list[0].Path
		return
	}
	c.Data.Mix = mixOf(list)
}

// HasData reports whether the configuration names data.
func (c *Config) HasData() bool { return c.Data.Path != "" || c.Data.Mix.Given() }

// Weighting says how the weights of sources are computed: from their sizes by a method, or as given.
type Weighting struct {
	Method string  // natural, temperature, unimax or weights
	Number float64 // the temperature, or the largest number of epochs for unimax

	names []string  // with the method weights: names of sources with given weights
	given []float64 // the weight of each of names
}

// Weights returns the share of each source in a run of the given number of rows, or tokens, given the number of each
// source.
func (w Weighting) Weights(sizes []float64, budget float64) []float64 {
	switch w.Method {
	case "weights":
		return dataset.Normalised(w.given)
	case "unimax":
		return dataset.UniMax(sizes, budget, w.Number)
	case "temperature":
		return dataset.Temperature(sizes, w.Number)
	}
	return dataset.Normalised(sizes)
}

// weightsForm shows the forms of data.weights.
const weightsForm = "natural, temperature:T, unimax:EPOCHS or NAME=WEIGHT NAME=WEIGHT …"

// ParseWeighting reads a weighting of the named sources.
func ParseWeighting(text string, names []string) (Weighting, error) {
	w, err := parseWeighting(text)
	if err != nil {
		return w, err
	}
	return w.of(names)
}

// of returns the weighting of the named sources, in their order.
func (w Weighting) of(names []string) (Weighting, error) {
	if w.Method != "weights" {
		return w, nil
	}
	all := make([]float64, len(names))
	for k, name := range w.names {
		i := slices.Index(names, name)
		if i < 0 {
			hint := ""
			if near := nearest.To(name, names); near != "" {
				hint = ": is it " + near + "?"
			}
			return w, fmt.Errorf("%q is not the name of a source; there are %s%s",
				name, strings.Join(names, ", "), hint)
		}
		all[i] = w.given[k]
	}
	w.names, w.given = names, all
	return w, nil
}

// parseWeighting reads a weighting without checking that its names are those of sources.
func parseWeighting(text string) (Weighting, error) {
	words := strings.Fields(text)
	if len(words) == 1 && !strings.Contains(text, "=") {
		method, number, has := strings.Cut(words[0], ":")
		w := Weighting{Method: method}
		switch method {
		case "natural":
			if !has {
				return w, nil
			}
		case "temperature", "unimax":
			var err error
			if w.Number, err = strconv.ParseFloat(number, 64); err == nil && w.Number > 0 && w.Number <= 1e9 {
				return w, nil
			}
			return w, fmt.Errorf("%q: %s needs a number above 0, such as %[2]s:4", words[0], method)
		}
		return w, fmt.Errorf("%q is not %s", words[0], weightsForm)
	}
	w, sum := Weighting{Method: "weights"}, 0.0
	for _, word := range words {
		name, number, _ := strings.Cut(word, "=")
		weight, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil || !(weight >= 0 && weight <= 1e9):
			return w, fmt.Errorf("%q is not %s", word, weightsForm)
		case slices.Contains(w.names, name):
			return w, fmt.Errorf("%s has two weights", name)
		}
		w.names, w.given = append(w.names, name), append(w.given, weight)
		sum += weight
	}
	if sum == 0 {
		return w, fmt.Errorf("%q gives no source a weight above 0; weights are %s",
			strings.TrimSpace(text), weightsForm)
	}
	return w, nil
}

// Weights are the shares of the sources of a mix over a run. The text form is WEIGHTS, then WEIGHTS from STEP [to STEP]
// for changes.
type Weights struct {
	written
	entries []weightsEntry
	err     error
}

// weightsEntry is one part of data.weights.
type weightsEntry struct {
	Weighting
	changes, moves bool   // whether it has a start, and whether it also has an end
	begin, end     amount // of the change
	when           string // begin and end as they were given
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *Weights) UnmarshalText(text []byte) error {
	*w = readWeights(string(text))
	return nil
}

func readWeights(text string) Weights {
	w := Weights{written: written(text)}
	for part := range strings.SplitSeq(text, ",") {
		e, err := parseEntry(part, len(w.entries) == 0)
		if err != nil {
			w.err = err
			break
		}
		w.entries = append(w.entries, e)
	}
	return w
}

func parseEntry(text string, first bool) (e weightsEntry, err error) {
	weights, when, changes := strings.Cut(" "+strings.Join(strings.Fields(text), " "), " from ")
	if e.Weighting, err = parseWeighting(weights); err != nil {
		return e, err
	}
	if changes == first {
		return e, fmt.Errorf("%q: the first weights take no start; each later entry needs one, such as from 80%%",
			strings.TrimSpace(text))
	}
	e.changes, e.when = changes, when
	if !changes {
		return e, nil
	}
	begin, end, moves := strings.Cut(when, " to ")
	e.moves = moves
	if e.begin, err = parseAmount(begin); err == nil && moves {
		e.end, err = parseAmount(end)
	}
	return e, err
}

// weightsStage is an entry of data.weights in a run.
type weightsStage struct {
	Weighting
	from, to int // steps between which weights move from those of the stage before; equal if they jump
}

// weightsStages returns the weights of the run's sources.
func (c *Config) weightsStages() ([]weightsStage, error) {
	sources, err := c.Sources()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.Name
	}
	var list []weightsStage
	for _, e := range c.Data.Weights.entries {
		var s weightsStage
		if s.Weighting, err = e.of(names); err != nil {
			return nil, err
		}
		if e.changes {
			before, when, moves := list[len(list)-1].to, e.when, e.moves
			s.from = c.steps(e.begin)
			s.to = s.from
			if moves {
				s.to = c.steps(e.end)
			}
			switch {
			case s.from >= c.Train.Steps || s.to > c.Train.Steps:
				return nil, fmt.Errorf("%q lies beyond the end of the run, train.steps = %d", "from "+when,
					c.Train.Steps)
			case moves && s.to <= s.from:
				return nil, fmt.Errorf("%q: the change ends at step %d before it begins at %d",
					"from "+when, s.to, s.from)
			case s.from < before || len(list) > 1 && s.from == list[len(list)-1].from:
				return nil, fmt.Errorf("%q begins at step %d, before the change before it is complete",
					"from "+when, s.from)
			}
		}
		list = append(list, s)
	}
	return list, c.Data.Weights.err
}

// Mix returns the weights of the sources over the samples of the run, given how many rows each has in an epoch. The
// budget of unimax is the samples from the start of its weights to the next weights, or to the end of the run.
func (c *Config) Mix(rows []uint64) (dataset.Mix, error) {
	stages, err := c.weightsStages()
	if err != nil {
		return nil, err
	}
	sizes := make([]float64, len(rows))
	for i, n := range rows {
		sizes[i] = float64(n)
	}
	var m dataset.Mix
	for i, s := range stages {
		end := c.Train.Steps
		if i+1 < len(stages) {
			end = stages[i+1].from
		}
		weights := s.Weights(sizes, float64(c.samples(end)-c.samples(s.from)))
		if s.from < s.to {
			m = append(m, dataset.MixPhase{From: c.samples(s.from), Weights: m[len(m)-1].Weights, To: weights})
		}
		m = append(m, dataset.MixPhase{From: c.samples(s.to), Weights: weights})
	}
	return m, nil
}

// MixFollowsLength reports whether the weights of the sources depend on the length of the run.
func (c *Config) MixFollowsLength() bool {
	stages, err := c.weightsStages()
	return c.Data.Mix.Given() && (err != nil || len(stages) > 1 || stages[0].Method == "unimax")
}

// UniMaxEpochs returns how often a source may be read if data.weights is unimax from the first step to the last; else
// 0.
func (c *Config) UniMaxEpochs() float64 {
	if stages, err := c.weightsStages(); err == nil && len(stages) == 1 && stages[0].Method == "unimax" {
		return stages[0].Number
	}
	return 0
}

// mix checks the paths of the data and how it is mixed.
func (k *checker) mix() {
	c := k.c
	switch {
	case c.Data.Path != "" && c.Data.Mix.Given():
		k.fault("data.mix", "removing one of them", "data.path and data.mix are both set")
		return
	case !c.Data.Mix.Given():
		if c.Data.Path == "" && !(c.planning && c.Model.Vocab > 0) {
			try := "data.path=DIR with a directory made by `anneal data build`, or data.mix for several"
			if c.planning {
				try += "; a dry run needs no data if model.vocab is given, such as model.vocab=32000"
			}
			k.fault("data.path", try, "data.path is not set")
		}
		return
	}
	list, err := c.Sources()
	if err != nil {
		k.fault("data.mix", "data.mix = web=data/web, code=data/code", "data.mix: %v", err)
		return
	}
	if _, err := c.weightsStages(); err != nil {
		example := list[0].Name + "=1"
		if len(list) > 1 {
			example = fmt.Sprintf("%s=0.7 %s=0.3", list[0].Name, list[1].Name)
		}
		k.fault("data.weights", fmt.Sprintf("data.weights = natural, unimax:4 or %s; further entries are later "+
			"changes, such as natural from 80%% to 90%%", example), "data.weights: %v", err)
	}
}
