package attention

import (
	"fmt"
	"slices"
	"strings"

	"anneal/device"
)

// Pattern defines the keys that every query sees. All patterns are causal, and every query sees itself.
type Pattern interface {
	// String returns the pattern in the form that Parse reads, with all known options.
	String() string
	// Resolve fills in missing options: those that depend on the length of the rows, and the seed of random choices.
	// The keys that a resolved pattern sees do not depend on the row length, so the layout for one row length also
	// serves shorter rows.
	Resolve(length int, seed uint64) Pattern
	// Check returns an *Error if a resolved pattern cannot be used for rows of length tokens and that number of query
	// heads.
	Check(length, heads int) error
	// entries returns an upper estimate of the number of blocks and ranges of keys in the layout.
	entries(length, heads int) float64
	// layout compiles a pattern that passes Check.
	layout(length, heads, layer int) *device.Layout
}

// Error describes an invalid pattern.
type Error struct{ Message, Try string }

func (e *Error) Error() string { return e.Message + "\n  try " + e.Try }

// Kind documents the text form of a pattern.
type Kind struct {
	Text string `json:"pattern"`
	Sees string `json:"sees"`     // what a query sees besides itself
	Left string `json:"left_out"` // defaults of the options
}

// Kinds lists the patterns that Parse accepts.
func Kinds() []Kind {
	return []Kind{
		{"full", "all tokens before it", ""},
		{"window:W", "the W−1 tokens before it", ""},
		{"longformer:WINDOW:GLOBAL", "a window, and the first GLOBAL tokens of the row", "512, 64"},
		{"longformer:…:dilation=D/D/…:heads=H", "the same; windows of H heads have gaps, which grow over the layers",
			"no gaps, 2"},
		{"bigbird:WINDOW:RANDOM:GLOBAL:BLOCK:SEED", "the last WINDOW blocks up to its own, the first GLOBAL blocks, " +
			"and RANDOM blocks between them", "2, 3, 1, 64, seed"},
		{"strided:STRIDE", "heads alternate: a window of STRIDE, or every STRIDE-th token", "about √context"},
		{"fixed:BLOCK:COLUMNS", "its own block, and COLUMNS tokens of each earlier block", "about √context, 8"},
		{"longnet:SEGMENT/DILATION:…", "every DILATION-th token of its SEGMENT, for each branch",
			"512/1:1024/2:… to context"},
		{"longnet:…:depth", "the same, with one branch in the first layers and all in the last", "all in every layer"},
		{"linear:gated", "all tokens before it, through a state of fixed size; with gates, the state decays",
			"no gates"},
		{"delta:gated", "the same, through a state in which a new value replaces that of its key", "no gates"},
		{"gla", "the same as linear:gated, with a gate for each dimension of the state", ""},
	}
}

// names lists the texts of Kinds.
func names() string {
	var list []string
	for _, k := range Kinds() {
		list = append(list, k.Text)
	}
	return strings.Join(list, ", ")
}

// Parse parses a pattern: a name and its options, separated by colons. An option is a value, in the order given in
// the pattern's file, or name=value: longformer:512:64 is longformer:window=512:global=64.
func Parse(text string) (Pattern, error) {
	p, err := parse(text)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func parse(text string) (Pattern, error) {
	name, rest, given := strings.Cut(strings.TrimSpace(text), ":")
	var options []string
	if given {
		options = strings.Split(rest, ":")
	}
	switch name {
	case "full":
		return Full{}, read(text, options)
	case "window":
		return readWindow(text, options)
	case "longformer":
		return readLongformer(text, options)
	case "bigbird":
		return readBigBird(text, options)
	case "strided":
		return readStrided(text, options)
	case "fixed":
		return readFixed(text, options)
	case "longnet":
		return readLongNet(text, options)
	case "linear":
		return readLinear(text, options)
	case "gla":
		return readGLA(text, options)
	case "delta":
		return readDelta(text, options)
	case "":
		return nil, &Error{"the attention pattern is empty", names()}
	}
	return nil, &Error{fmt.Sprintf("unknown attention pattern %q", name), names()}
}

// Patterns are the patterns of a model's layers, which take them in turn. The zero value is Full for all layers. The
// text form is a comma-separated list of patterns. A list is not changed once it is made.
type Patterns []Pattern

// ParseList parses the text form of Patterns.
func ParseList(text string) (Patterns, error) {
	var list Patterns
	for _, t := range strings.Split(text, ",") {
		p, err := Parse(t)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// Of returns the pattern of a layer.
func (l Patterns) Of(layer int) Pattern {
	if len(l) == 0 {
		return Full{}
	}
	return l[layer%len(l)]
}

// Resolve completes every pattern; see Pattern.Resolve.
func (l Patterns) Resolve(length int, seed uint64) Patterns {
	complete := make(Patterns, len(l))
	for i, p := range l {
		complete[i] = p.Resolve(length, seed)
	}
	return complete
}

// String returns the text form, which ParseList reads.
func (l Patterns) String() string {
	if len(l) == 0 {
		return Full{}.String()
	}
	texts := make([]string, len(l))
	for i, p := range l {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

// MarshalText implements encoding.TextMarshaler.
func (l Patterns) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Errors are of type *Error.
func (l *Patterns) UnmarshalText(text []byte) error {
	list, err := ParseList(string(text))
	if err == nil {
		*l = list
	}
	return err
}

// Compile turns a pattern into the layout of one layer, for rows of up to length tokens and that number of query
// heads. The layout is nil if every query sees all keys before it. If the pattern depends on the depth of the layer,
// the layout is that of the last layer.
func Compile(p Pattern, length, heads, layer int) (*device.Layout, error) {
	if err := CheckLayers(Patterns{p}, length, heads, 1); err != nil {
		return nil, err
	}
	all := stages(p.Resolve(length, 0))
	return all[len(all)-1].layout(length, heads, layer), nil
}

// CompileLayers compiles the patterns of a model's layers; the list repeats over the layers. Layers that see the same
// keys share a layout.
func CompileLayers(list Patterns, length, heads, layers int) ([]*device.Layout, error) {
	if err := CheckLayers(list, length, heads, layers); err != nil {
		return nil, err
	}
	layouts := make([]*device.Layout, layers)
	made := map[string]*device.Layout{}
	for i := range layouts {
		p := stage(list.Of(i).Resolve(length, 0), i, layers)
		key := p.String()
		if _, own := p.(BigBird); own { // random blocks differ between layers
			key = fmt.Sprint(key, " in ", i)
		}
		l, ok := made[key]
		if !ok {
			l = p.layout(length, heads, i)
			made[key] = l
		}
		layouts[i] = l
	}
	return layouts, nil
}

// tile is the largest number of queries in a block.
const tile = 64

// queries cuts the positions first, first+step, … before end into blocks and calls keys for the ranges of each.
func queries(first, step, end int, keys func(q device.Strip) []device.KeyRange) []device.QueryBlock {
	var blocks []device.QueryBlock
	for ; first < end; first += tile * step {
		q := device.Strip{First: first, Step: step, Count: min((end-first+step-1)/step, tile)}
		blocks = append(blocks, device.QueryBlock{Queries: q, Keys: keys(q)})
	}
	return blocks
}

// after returns the position after the last one of a strip.
func after(s device.Strip) int { return s.First + (s.Count-1)*s.Step + 1 }

// span returns keys from … to−1, each visible to all later queries and itself.
func span(from, to int) device.KeyRange {
	return device.KeyRange{Strip: device.Strip{First: from, Step: 1, Count: to - from}, Far: everywhere}
}

// everywhere is the Far of keys that are visible from any distance.
const everywhere = 1 << 40

// same returns the layout in which all heads share one graph.
func same(blocks []device.QueryBlock, length int) *device.Layout {
	return &device.Layout{Len: length, Graphs: []device.Graph{{Blocks: blocks}}}
}

// cycled returns the layout in which heads use the graphs in turn.
func cycled(graphs []device.Graph, length, heads int) *device.Layout {
	for i := range graphs {
		graphs[i].Blocks = slices.Clone(graphs[i].Blocks) // frees the excess capacity
	}
	l := &device.Layout{Len: length, Graphs: graphs, Head: make([]int, heads)}
	for h := range l.Head {
		l.Head[h] = h % len(graphs)
	}
	return l
}
