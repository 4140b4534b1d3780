package tasks

import (
	"fmt"
	"math"
	"slices"
)

// A group is tasks whose figures are also averaged.
type group struct {
	name, alias string
	tasks       []string
	metrics     []groupMetric
}

type groupMetric struct {
	name   string
	bySize bool
	filter []string
}

func isGroup(keys []*entry) bool {
	return slices.ContainsFunc(keys, func(e *entry) bool { return e.key == "group" })
}

func newGroup(file string, keys []*entry) (*group, error) {
	g := &group{}
	names := []string{"group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag"}
	for _, e := range keys {
		if !slices.Contains(names, e.key) {
			return nil, e.unknown(names)
		}
	}
	byName := byKey(keys)
	err := all(
		set(byName, "group", &g.name, (*entry).text),
		set(byName, "group_alias", &g.alias, (*entry).text),
		set(byName, "task", &g.tasks, (*entry).texts),
	)
	if err != nil {
		return nil, err
	}
	if len(g.tasks) == 0 {
		return nil, &Problem{At: file, Message: "a group without tasks", Try: "task: [NAME, NAME]"}
	}
	for i, name := range g.tasks {
		if slices.Contains(g.tasks[:i], name) {
			return nil, byName["task"].problem("each task once", "the group has the task %s twice", clip(name))
		}
	}
	if g.alias == "" {
		g.alias = g.name
	}
	e := byName["aggregate_metric_list"]
	if e == nil || e.null() {
		return g, nil
	}
	items, err := e.items()
	if err != nil {
		return nil, err
	}
	for _, x := range items {
		m, err := readGroupMetric(x)
		if err != nil {
			return nil, err
		}
		g.metrics = append(g.metrics, m)
	}
	return g, nil
}

func readGroupMetric(e *entry) (m groupMetric, err error) {
	m = groupMetric{bySize: true, filter: []string{"none"}}
	list, err := e.mapping("metric", "aggregation", "weight_by_size", "filter_list")
	if err != nil {
		return m, err
	}
	keys := byKey(list)
	how := "mean"
	err = all(
		set(keys, "metric", &m.name, (*entry).text),
		set(keys, "aggregation", &how, (*entry).text),
		set(keys, "weight_by_size", &m.bySize, (*entry).truth),
		set(keys, "filter_list", &m.filter, (*entry).texts),
	)
	switch {
	case err != nil:
	case m.name == "":
		err = e.problem("- metric: acc", "an element of aggregate_metric_list without metric")
	case how != "mean":
		err = keys["aggregation"].problem("mean", "groups cannot be aggregated by %s", clip(how))
	}
	return m, err
}

// GroupResult holds the figures of a group.
type GroupResult struct {
	Group   string         `json:"group"`
	Alias   string         `json:"alias"`
	Tasks   []string       `json:"tasks"`
	Metrics []MetricResult `json:"metrics"`
}

// check finds a metric of the group that one of its tasks lacks.
func (g *group) check(tasks map[string]*Task) error {
	for _, name := range g.tasks {
		for _, m := range g.metrics {
			for _, filter := range m.filter {
				t := tasks[name]
				known := slices.ContainsFunc(t.filters, func(p pipeline) bool { return p.name == filter })
				if !known || !t.has(m.name) {
					return &Problem{
						At: t.File, Message: fmt.Sprintf("the group %s averages %s of the filter %s, which its task "+
							"%s lacks", clip(g.name), clip(m.name), clip(filter), name),
					}
				}
			}
		}
	}
	return nil
}

// result averages the figures of the group's tasks.
func (g *group) result(tasks []TaskResult) GroupResult {
	r := GroupResult{Group: g.name, Alias: g.alias, Tasks: g.tasks, Metrics: []MetricResult{}}
	for _, m := range g.metrics {
		for _, filter := range m.filter {
			r.Metrics = append(r.Metrics, g.average(m, filter, tasks))
		}
	}
	return r
}

// average returns the mean of a metric over tasks. Its standard error is that of the tasks' pooled variance
// (lm_eval.api.metrics.pooled_sample_stderr).
func (g *group) average(m groupMetric, filter string, tasks []TaskResult) MetricResult {
	r := MetricResult{Name: m.name, Filter: filter, HigherIsBetter: higherIsBetter(m.name)}
	weights, items, variance := 0.0, 0.0, 0.0
	for _, t := range tasks {
		if !slices.Contains(g.tasks, t.Task) {
			continue
		}
		for _, x := range t.Metrics {
			if x.Name != m.name || x.Filter != filter {
				continue
			}
			r.HigherIsBetter = x.HigherIsBetter // which the task may say otherwise than the metric
			n := float64(t.Items)
			weight := 1.0
			if m.bySize {
				weight = n
			}
			r.Value += Number(weight) * x.Value
			weights += weight
			items += n
			variance += (n - 1) * float64(x.Stderr*x.Stderr) * n
		}
	}
	r.Value /= Number(weights)
	r.Stderr = Number(math.Sqrt(variance / (items - float64(len(g.tasks))) / items))
	return r
}
