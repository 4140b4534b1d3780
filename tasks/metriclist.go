package tasks

import (
	"slices"
	"strings"

	"github.com/dlclark/regexp2/v2"
)

// A metric is a measure of a task.
type metric struct {
	name   string
	higher bool // is better
	exact  exact
}

// exact says what exact_match ignores.
type exact struct {
	ignore                  []*regexp2.Regexp
	letters, signs, numbers bool
}

// kinds holds the metrics that each output can have; the first is the default.
var kinds = map[Output]struct {
	metrics  []string
	defaults int
}{
	MultipleChoice: {[]string{"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"}, 2},
	LogLikelihood:  {[]string{"perplexity", "acc"}, 2},
	Rolling:        {[]string{"word_perplexity", "byte_perplexity", "bits_per_byte"}, 3},
	Generate:       {[]string{"exact_match"}, 1},
}

// aggregations names those of the metrics that are not means.
var aggregations = map[string]string{
	"perplexity": "perplexity", "word_perplexity": "weighted_perplexity", "byte_perplexity": "weighted_perplexity",
	"bits_per_byte": "bits_per_byte",
}

func aggregation(metric string) string {
	if a := aggregations[metric]; a != "" {
		return a
	}
	return "mean"
}

// readScores reads the keys that say how answers become figures.
func (t *Task) readScores(keys map[string]*entry) error {
	kind := kinds[t.Output]
	if e := keys["metric_list"]; e != nil && !e.null() {
		items, err := e.items()
		if err != nil {
			return err
		}
		for _, x := range items {
			m, err := readMetric(x, t.Output)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(t.metrics, func(o metric) bool { return o.name == m.name }) {
				return x.problem("one of them", "the metric %s is given twice", m.name)
			}
			t.metrics = append(t.metrics, m)
		}
	} else {
		for _, name := range kind.metrics[:kind.defaults] {
			t.metrics = append(t.metrics, metric{name: name, higher: higherIsBetter(name)})
		}
	}
	return all(t.readFilters(keys["filter_list"]), t.readGeneration(keys["generation_kwargs"]))
}

func higherIsBetter(metric string) bool { return aggregation(metric) == "mean" }

func readMetric(e *entry, o Output) (m metric, err error) {
	list, err := e.mapping("metric", "aggregation", "higher_is_better", "ignore_case", "ignore_punctuation",
		"ignore_numbers", "regexes_to_ignore")
	if err != nil {
		return m, err
	}
	keys := byKey(list)
	if keys["metric"] == nil {
		return m, e.problem("- metric: acc", "an element of metric_list without metric")
	}
	if m.name, err = keys["metric"].text(); err != nil {
		return m, err
	}
	if known := kinds[o].metrics; !slices.Contains(known, m.name) {
		return m, keys["metric"].problem("one of "+strings.Join(known, ", "), "%s does not have the metric %s", o,
			clip(m.name))
	}
	m.higher = higherIsBetter(m.name)
	aggregated := aggregation(m.name)
	err = all(
		set(keys, "aggregation", &aggregated, (*entry).text),
		set(keys, "higher_is_better", &m.higher, (*entry).truth),
		set(keys, "ignore_case", &m.exact.letters, (*entry).truth),
		set(keys, "ignore_punctuation", &m.exact.signs, (*entry).truth),
		set(keys, "ignore_numbers", &m.exact.numbers, (*entry).truth),
		set(keys, "regexes_to_ignore", &m.exact.ignore, func(e *entry) (list []*regexp2.Regexp, err error) {
			patterns, err := e.texts()
			for _, p := range patterns {
				re, err := compile(e, p)
				if err != nil {
					return nil, err
				}
				list = append(list, re)
			}
			return list, err
		}),
	)
	if want := aggregation(m.name); err == nil && aggregated != want {
		err = keys["aggregation"].problem(want, "%s cannot be aggregated by %s", m.name, clip(aggregated))
	}
	if err != nil || m.name == "exact_match" && o == Generate {
		return m, err
	}
	for _, x := range list {
		if strings.HasPrefix(x.key, "ignore_") || x.key == "regexes_to_ignore" {
			return m, x.problem("leaving it out", "%s is for exact_match of generate_until", x.key)
		}
	}
	return m, err
}

func (t *Task) readGeneration(e *entry) error {
	t.generation = generation{[]string{t.between}, 256}
	if e == nil || e.null() {
		return nil
	}
	if t.Output != Generate {
		return e.problem("output_type: generate_until", "%s has no use of generation_kwargs", t.Output)
	}
	list, err := e.mapping("until", "max_gen_toks", "do_sample", "temperature")
	for _, x := range list {
		switch x.key {
		case "until":
			t.generation.until, err = x.texts()
			if err == nil && slices.Contains(t.generation.until, "") {
				err = x.problem("a text of at least one character", "until: an empty text occurs everywhere")
			}
		case "max_gen_toks":
			t.generation.tokens, err = x.whole(1)
		case "do_sample":
			var b bool
			if b, err = x.truth(); b {
				err = x.problem("do_sample: false", "answers are the most likely ones; they are not sampled")
			}
		case "temperature":
			v, _ := x.value()
			if f, ok := v.(float64); v != int64(0) && (!ok || f != 0) {
				err = x.problem("temperature: 0.0", "answers are the most likely ones; they are not sampled")
			}
		}
		if err != nil {
			return err
		}
	}
	return err
}
