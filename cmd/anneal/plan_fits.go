package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"anneal/plan"
	"anneal/plan/cluster"
	"anneal/train"
)

// An unfitPlan is the error of a plan that does not fit, on this machine or on a cluster, or of a search that found no
// mesh. If memory is the cause, the command exits as `anneal train` does when it refuses such a run. --json has the
// plan beside the error.
type unfitPlan struct {
	message string
	cause   error // which decides the exit code
	plan    map[string]any
}

func (e *unfitPlan) Error() string { return e.message }

// Unwrap makes exitCode see the cause, and session.fail the plan to print.
func (e *unfitPlan) Unwrap() []error { return []error{e.cause, &incomplete{result: e.plan}} }

// unfitHere returns the error of a plan for this machine that does not fit.
func unfitHere(p *plan.Foresight, planned plannedHere) error {
	planned.Reason = strings.TrimPrefix(p.Verdict(), "does not fit: ")
	return unfitBeside(p, planned)
}

// unfitBeside returns the error of a run that does not fit and whose parts are printed, with what --json prints beside
// it; nil if it fits.
func unfitBeside(p *plan.Foresight, result any) error {
	if p.Fits {
		return nil
	}
	memory := unfit(p, "the parts are listed above")
	return withPlan(memory.Error(), memory, result)
}

// unfitCluster returns the error of a plan for a cluster that does not fit; nil if it fits.
func unfitCluster(r *cluster.Run, p plannedRun) error {
	if p.Fits {
		return nil
	}
	memory := &train.MemoryError{Need: int64(p.fullest().Bytes), Available: int64(usable(r))}
	return withPlan("this run does not fit: "+p.excess(r)+"\n  "+r.TooSmall(), memory, p)
}

// withPlan returns an unfitPlan with the plan's keys in JSON.
func withPlan(message string, memory *train.MemoryError, plan any) error {
	object, err := asObject(plan)
	if err != nil {
		return err
	}
	return &unfitPlan{message, memory, object}
}

// unfitSearch returns the error of a search that found no mesh. If some mesh was refused for its memory alone, the run
// does not fit; otherwise the command line allows no mesh.
func unfitSearch(r *cluster.Run, found *cluster.Search) error {
	var cause error = &usageError{message: found.Advice}
	for _, x := range found.Refused {
		try := *r
		try.Mesh, try.Cluster = x.Mesh, r.Cluster.Part(x.Mesh.Ranks())
		if try.Check() == nil {
			cause = &train.MemoryError{Available: int64(usable(r))}
			break
		}
	}
	return noMesh(found.Advice, cause, false, found.Refused)
}

// noMesh returns the error of a search that found no mesh, or none that fits and is fast enough.
func noMesh(reason string, cause error, fits bool, rejected []cluster.Rejected) error {
	return &unfitPlan{reason, cause, map[string]any{
		"fits": fits, "reason": reason, "rejected": append([]cluster.Rejected{}, rejected...), // [], not null
	}}
}

// asObject returns the keys of a value in JSON.
func asObject(v any) (map[string]any, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text.Bytes(), &keys); err != nil {
		return nil, err
	}
	object := map[string]any{}
	for key, value := range keys {
		object[key] = value
	}
	return object, nil
}
