package curate

import (
	"fmt"

	"anneal/dedup"
)

// pass is one reading of all documents. A pipeline has one more pass than comparisons, because a comparison needs all
// documents that reach it. The pass after a comparison begins with the stage that carries out its decisions.
type pass struct {
	number  int
	last    bool
	stages  []stage
	first   int // ordinal of the first of them in the pipeline
	signals bool
	texts   bool
}

// passesOf divides the stages at the comparisons.
func passesOf(p *Pipeline) []*pass {
	all := []*pass{{signals: p.Signals, texts: p.Texts}}
	for i, s := range p.stages {
		if s.compare != nil {
			all = append(all, &pass{number: len(all), first: i, signals: p.Signals})
		}
		at := all[len(all)-1]
		at.stages = append(at.stages, s)
	}
	all[len(all)-1].last = true
	return all
}

// compare returns the options of the comparison before the pass.
func (p *pass) compare() dedup.Options { return *p.stages[0].compare }

// docs returns the name of the shard with the kept documents of a split.
func (p *pass) docs(split int) string {
	if p.last {
		return shardName("docs", split)
	}
	return fmt.Sprintf("%s/%d/%05d.jsonl.s2", betweenDir, p.number+1, split)
}

// beside returns the name of another shard of a split: in the directory kind, or kind-2 in the second pass.
func (p *pass) beside(kind string, split int) string {
	if p.number > 0 {
		kind = fmt.Sprintf("%s-%d", kind, p.number+1)
	}
	return shardName(kind, split)
}

// decisions returns the name of the file with the decisions of the comparison before the pass.
func (p *pass) decisions() string { return fmt.Sprintf("%s/decisions-%d", betweenDir, p.number+1) }

// newStages makes the stages, for one goroutine.
func newStages(stages []stage) []Stage {
	all := make([]Stage, len(stages))
	for i, s := range stages {
		all[i] = s.make()
		if f, ok := all[i].(*Filter); ok {
			f.Name, f.Bounds = s.name, s.bounds
		}
	}
	return all
}
