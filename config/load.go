package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"anneal/internal/fileio"
	"anneal/internal/yaml"

	"github.com/goccy/go-yaml/ast"
)

const maxProblems = 20 // in one report: a file with more is not a config

// Sources are the inputs of a config. Later sources replace values of earlier ones.
type Sources struct {
	Recipe    string   // one of Recipes; "" for none
	Scale     float64  // factor by which the recipe's model is scaled down; 0 means 1
	File      string   // a YAML file; "" for none
	Overrides []string // section.key=value
	Planning  bool     // only for a plan: without data, a model with a known vocabulary is enough
	Started   bool     // File belongs to a run that has begun; the vocabulary is that of its weights

	// Weights completes a config with init.from from the weights there. It is called once files and overrides are
	// read, and before anything is derived. It may be nil, because the config of a run is complete.
	Weights func(*Config) error

	// Teacher does the same for a config with distill.teacher: it calls SetTeacher.
	Teacher func(*Config) error

	// Complete derives values that depend on more than the config, such as sizes from a time budget. It is called once
	// all given values are read, and before the keys' own rules apply. It may be nil.
	Complete func(*Config) error
}

// Load reads a config file ("" for none) and applies overrides of the form section.key=value in order.
func Load(path string, overrides []string) (*Config, error) {
	return Sources{File: path, Overrides: overrides}.Load()
}

// Read parses a config that YAML wrote.
func Read(text []byte) (*Config, error) { return Default().read(text, Sources{}) }

// Load puts a config together, derives values that were not given and checks the whole. On failure the error is an
// *Error with every problem found, or a Problem.
func (s Sources) Load() (*Config, error) {
	c := Default()
	c.planning, c.started = s.Planning, s.Started
	if err := c.prepare(s); err != nil {
		return nil, err
	}
	var text []byte
	if s.File != "" {
		var err error
		if text, err = readFile(s.File); err != nil {
			return nil, err
		}
	}
	return c.read(text, s)
}

func readFile(path string) ([]byte, error) {
	fault := func(err error, try string) error {
		return &Error{[]Problem{{Message: "cannot read the config: " + err.Error(), At: path, Try: try}}}
	}
	text, err := fileio.ReadSmall(path, yaml.MaxBytes)
	if err != nil {
		return nil, fault(err, "the path of a YAML file, such as examples/tiny.yaml")
	}
	return text, nil
}

// read sets the values of the file's text and of overrides, derives values that were not given and checks the whole.
func (c *Config) read(text []byte, s Sources) (*Config, error) {
	path := s.File
	problems, readable := c.readYAML(text, path)
	if !readable {
		return nil, &Error{problems}
	}
	if path != "" {
		c.followDecay()
	}
	for _, o := range s.Overrides {
		c.underive(o)
	}
	for _, o := range s.Overrides {
		problems = append(problems, c.override(o)...)
	}
	c.MapPaths(c.absolute)
	c.dataVocabulary()
	if c.Init.From != "" && s.Weights != nil && len(problems) == 0 {
		if err := s.Weights(c); err != nil {
			return nil, err
		}
	}
	if c.Distill.On() && s.Teacher != nil && len(problems) == 0 {
		if err := s.Teacher(c); err != nil {
			return nil, err
		}
	}
	if s.Complete != nil && len(problems) == 0 {
		if err := s.Complete(c); err != nil {
			return nil, err
		}
	}
	// Combinations are checked even if single values are wrong: wrong values are at their defaults, which work
	// together.
	c.Resolve()
	problems = append(problems, c.check()...)
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], Problem{Message: fmt.Sprintf("and %d more mistakes", more), At: path})
	}
	if err := asError(problems); err != nil {
		return nil, err
	}
	c.remarkRanks()
	c.remarkDecay()
	return c, nil
}

// underive resets values in a run's file that were not given, and may depend on the key of an override, so that they
// follow its new value: the groups' decay, defaults that depend on the optimizer or the family, the number of ranks.
// Lengths and micro-batches stay, so that a run that begins like the old one has the same warmup; the end of the decay
// follows the end of the run.
func (c *Config) underive(o string) {
	name, _, _ := strings.Cut(o, "=")
	var from []string
	switch name {
	case "data.path": // data.path and data.mix replace each other
		c.leaveOut(allKeys[keyIndex["data.mix"]])
		c.leaveOut(allKeys[keyIndex["data.weights"]])
		return
	case "data.mix":
		c.leaveOut(allKeys[keyIndex["data.path"]])
		return
	case "train.steps":
		c.followLength("schedule.horizon")
		return
	case "optimizer.name":
		from = []string{"optimizer."}
		if s := c.origins["schedule.name"]; s.Default || s.Rule == scheduleFreeRule {
			from = append(from, "schedule.name", "schedule.final_ratio")
		}
	case "optimizer.variant", "optimizer.muon_scale":
		from = []string{"optimizer."}
	case "optimizer.weight_decay", "optimizer.decay_embeddings":
		from = []string{"optimizer.groups."}
	case "optimizer.lr":
		from = []string{"optimizer.adamw_lr", "optimizer.weight_decay", "optimizer.groups."} // with a timescale
	case "optimizer.decay_timescale":
		from = []string{"optimizer.weight_decay", "optimizer.groups."}
	case "schedule.name":
		from = []string{"schedule."}
	case "schedule.decay_shape":
		from = []string{"schedule.final_ratio"}
	case "init.from":
		from = []string{"init."}
	case "distill.teacher":
		from = []string{"distill."}
	case "model.context":
		from = []string{"model.rope_original_context", "model.attention"}
	case "model.kv_lora_rank", "model.head_dim":
		from = []string{"model.rope_head_dim", "model.mup_base_head_dim"}
	case "model.lora_rank":
		from = []string{"model.lora_alpha"}
	case "model.experts_per_token":
		from = []string{"model.expert_ffn"}
	case "model.rope_scaling":
		from = []string{"model.rope_original_context"}
	case "parallel.tensor", "parallel.context", "parallel.pipeline":
		from = []string{"parallel.ranks"}
	case "model.layers":
		from = []string{"model.attention"}
	case "model.family", "model.activation", "model.dim", "model.heads", "model.ffn", "model.mup", "model.mup_base_dim":
		from = []string{"model."}
	default:
		return
	}
	for _, k := range allKeys {
		follows := slices.ContainsFunc(from, func(prefix string) bool { return strings.HasPrefix(k.Name, prefix) })
		origin := c.origins[k.Name]
		if given := origin.Rule == "" && !origin.Default; follows && !given && !k.amount {
			c.leaveOut(k)
		}
	}
}

// followLength sets a length of a run's file that was given as a part of the run to that part again, so that it
// follows a new length of the run.
func (c *Config) followLength(key string) {
	from := c.origins[key]
	if a, err := parseAmount(from.Rule); err == nil && a.unit == "%" {
		c.set(allKeys[keyIndex[key]], from.Rule, Origin{File: from.File, Line: from.Line, Col: from.Col})
	}
}

// leaveOut resets a key as if it were not given.
func (c *Config) leaveOut(k Key) {
	field := func(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(k.index) }
	field(c).Set(field(Default()))
	delete(c.amounts, k.Name)
	delete(c.origins, k.Name)
}

// Override applies one override of the form section.key=value. Values derived from the key are not derived again.
func (c *Config) Override(o string) error { return asError(c.override(o)) }

func (c *Config) override(o string) []Problem {
	from := Origin{CommandLine: o}
	name, text, ok := strings.Cut(o, "=")
	if !ok {
		return []Problem{{Message: fmt.Sprintf("%q is not an override", o), At: from.Place(),
			Try: "section.key=value, such as model.dim=512"}}
	}
	i, ok := keyIndex[name]
	if !ok && isSection(name) {
		return []Problem{{
			Key: name, Message: fmt.Sprintf("%s is a section and has no value", name), At: from.Place(),
			Try: fmt.Sprintf("%s.key=value; `anneal explain %s` lists its keys", name, name),
		}}
	}
	if !ok {
		return []Problem{unknownKey(name, from.Place())}
	}
	if inner, ok := strings.CutPrefix(text, "["); ok && allKeys[i].list && strings.HasSuffix(inner, "]") {
		text = strings.TrimSuffix(inner, "]") // as a file has it
	}
	if err := c.set(allKeys[i], text, from); err != nil {
		return []Problem{allKeys[i].problem(err, from.Place())}
	}
	return nil
}

// readYAML sets the values of the file. If the file as a whole cannot be read, it returns a single problem, and
// readable is false.
func (c *Config) readYAML(text []byte, path string) (problems []Problem, readable bool) {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if !utf8.Valid(text) {
		return []Problem{{Message: "the config is not UTF-8 text", At: path,
			Try: "a YAML file, such as examples/tiny.yaml"}}, false
	}
	if cutOff(text) {
		return []Problem{{Message: "the file is truncated: its last line is missing, and values with it", At: path,
			Try: "a copy of the file that is whole"}}, false
	}
	file, problem := parseYAML(text, path)
	if problem != nil {
		return []Problem{*problem}, false
	}
	if len(file.Docs) > 1 {
		return []Problem{{Message: "the file holds more than one YAML document", At: path,
			Try: "one document per file"}}, false
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, true
	}
	r := reader{c: c, path: path, lines: strings.Split(string(text), "\n")}
	r.mapping(file.Docs[0].Body, "")
	return r.problems, true
}

// parseYAML turns the parser's errors into a Problem.
func parseYAML(text []byte, path string) (*ast.File, *Problem) {
	file, err := yaml.Parse(text)
	var e *yaml.Error
	if !errors.As(err, &e) {
		return file, nil
	}
	problem := &Problem{Message: e.Message, At: path, Try: e.Try}
	if e.Line > 0 {
		problem.At = Origin{File: path, Line: e.Line, Col: e.Column}.Place()
	}
	return nil, problem
}

// reader walks one parsed file and collects its mistakes.
type reader struct {
	c        *Config
	path     string
	lines    []string
	problems []Problem
}

func (r *reader) at(n ast.Node) Origin {
	o := Origin{File: r.path, Line: 1, Col: 1}
	if t := n.GetToken(); t != nil && t.Position != nil {
		o.Line, o.Col = t.Position.Line, t.Position.Column
	}
	if o.File == "" {
		o.File = "config"
	}
	return o
}

func (r *reader) fault(n ast.Node, key, try, format string, args ...any) {
	r.problems = append(r.problems, Problem{
		Key: key, Message: fmt.Sprintf(format, args...), At: r.at(n).Place(), Try: try,
	})
}

// mapping reads the keys of one section; prefix is "" for the whole file, else "section.".
func (r *reader) mapping(n ast.Node, prefix string) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	case *ast.NullNode, *ast.CommentGroupNode:
		return // a section with all its keys commented out
	default:
		r.fault(n, "", "key: value, one a line", "%s holds no keys",
			cmp.Or(strings.TrimSuffix(prefix, "."), "the config"))
		return
	}
	for _, v := range values {
		if v.Key == nil || v.Key.GetToken() == nil {
			r.fault(v, "", "key: value", "a key is missing")
			continue
		}
		name := prefix + v.Key.GetToken().Value
		if isSection(name) && !strings.Contains(v.Key.GetToken().Value, ".") {
			r.mapping(v.Value, name+".")
			continue
		}
		r.value(name, v)
	}
}

func (r *reader) value(name string, v *ast.MappingValueNode) {
	i, ok := keyIndex[name]
	if !ok && len(r.problems) >= maxProblems {
		r.problems = append(r.problems, Problem{}) // only counted, because suggestions take long
		return
	}
	if !ok {
		r.problems = append(r.problems, unknownKey(name, r.at(v.Key).Place()))
		return
	}
	if strings.Contains(v.Key.GetToken().Value, ".") {
		last := strings.LastIndexByte(name, '.')
		r.fault(v.Key, name, fmt.Sprintf("%s: under %s:", name[last+1:], strings.ReplaceAll(name[:last], ".", ": ")),
			"dotted keys such as %s work only on the command line", name)
		return
	}
	var text string
	switch s := v.Value.(type) {
	case *ast.SequenceNode:
		list, ok := texts(s)
		if !allKeys[i].list || !ok {
			r.fault(v.Key, name, allKeys[i].example(), "%s needs %s", name, article(allKeys[i].Type))
			return
		}
		text = strings.Join(list, ",")
	case *ast.StringNode:
		text = s.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = s.GetToken().Value
	default:
		try := allKeys[i].example()
		if allKeys[i].Rule == "" {
			try = fmt.Sprintf("%s: %s", name[strings.LastIndexByte(name, '.')+1:], allKeys[i].Default)
		}
		r.fault(v.Key, name, try, "%s needs a single value", name)
		return
	}
	from := r.at(v.Key)
	if line := from.Line - 1; line < len(r.lines) {
		_, from.Rule, _ = strings.Cut(r.lines[line], " # derived: ") // as YAML writes it
		from.Default = strings.HasSuffix(r.lines[line], " # default")
	}
	if err := r.c.set(allKeys[i], text, from); err != nil {
		r.problems = append(r.problems, allKeys[i].problem(err, r.at(v.Value).Place()))
	}
	if from.Default && r.c.value(allKeys[i]) != Default().value(allKeys[i]) { // the value was edited
		from.Default = false
		r.c.origins[name] = from
	}
}

// texts returns the values of a list, if all are plain.
func texts(s *ast.SequenceNode) ([]string, bool) {
	var list []string
	for _, n := range s.Values {
		switch v := n.(type) {
		case *ast.StringNode:
			list = append(list, v.Value)
		case *ast.IntegerNode, *ast.FloatNode:
			list = append(list, v.GetToken().Value)
		default:
			return nil, false
		}
	}
	return list, len(list) > 0
}

func isSection(name string) bool {
	name += "."
	return slices.ContainsFunc(allKeys, func(k Key) bool { return strings.HasPrefix(k.Name, name) })
}
