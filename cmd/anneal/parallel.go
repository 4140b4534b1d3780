package main

import (
	"fmt"
	"io"
	"strings"

	"anneal/config"
	"anneal/internal/units"
	"anneal/model"
	"anneal/plan"
	"anneal/program/draw"
	"anneal/run"
)

type parallelCmd struct {
	Show parallelShowCmd `cmd:"" help:"Show who does what: ranks, stages, layers, and the timeline of a step."`
}

type parallelShowCmd struct {
	configArgs
	svgFlag
}

func (parallelShowCmd) Help() string {
	const tiny = "anneal parallel show examples/tiny.yaml data.path= model.vocab=8192 " // which needs no data
	return example(tiny+"parallel.ranks=4 parallel.pipeline=4",
		tiny+"parallel.ranks=8 parallel.pipeline=2 parallel.tensor=2",
		tiny+"parallel.ranks=2 parallel.pipeline=2 parallel.schedule=gpipe --svg step.svg") +
		"\n\nIn the timeline, F3 is the forward pass of micro-batch 3, B3 its backward pass, and W3 its weight " +
		"gradients, if the schedule computes them later; dots are idle. F3b is in the second chunk of layers of a " +
		"stage. The times are estimated from the number of parameters; messages take no time. Nothing is trained."
}

// mostRanks is the largest number of ranks that are listed one by one.
const mostRanks = 64

func (c parallelShowCmd) Run(s *session) error {
	cfg, err := run.LoadConfig(config.Sources{File: c.Config, Overrides: c.Overrides, Planning: true})
	if err != nil {
		return err
	}
	f, err := plan.Foresee(cfg)
	if err != nil {
		return err
	}
	m, err := plan.MeshOf(cfg, f)
	if err != nil {
		return asUsage(err)
	}
	showRanks(s, m)
	showStages(s, m)
	panel := draw.Panel{Title: meshTitle(m), Lists: m.Lists, Chunks: m.Chunks, Timeline: m.Timeline}
	s.printf("\n%s\n\n", panel.Title)
	if err := panel.Text(s.out(), s.columns()); err != nil {
		return err
	}
	s.printf("\nidle: %.1f %% of the time of all stages, estimated from parameters\n", 100*m.Idle)
	if err := s.picture(c.SVG, func(w io.Writer) error { return draw.SVG(w, []draw.Panel{panel}) }); err != nil {
		return err
	}
	return s.emit(meshJSON(m))
}

// meshTitle returns the title of the timeline.
func meshTitle(m *plan.Mesh) string {
	micro := "1 micro-batch"
	if m.Micro != 1 {
		micro = units.Commas(m.Micro) + " micro-batches"
	}
	if len(m.Stages) == 1 {
		return "no pipeline, " + micro
	}
	return fmt.Sprintf("%s, %d stages, %s", m.Parallel.Schedule, len(m.Stages), micro)
}

// showRanks prints the place of each rank in the mesh.
func showRanks(s *session, m *plan.Mesh) {
	tensor, context, stages := m.Parallel.Mesh()
	s.printf("%d ranks = %d stages × %d data × %d context × %d tensor\n\n", len(m.Places), stages, m.Data, context,
		tensor)
	if len(m.Places) > mostRanks {
		s.prosef("", "Neighbours in number share a layer (tensor), then a sequence (context), then a stage (data).\n\n")
		return
	}
	s.printf("rank  stage  data  context  tensor\n")
	for r, at := range m.Places {
		s.printf("%4d  %5d  %4d  %7d  %6d\n", r, at.Stage, at.Data, at.Chunk, at.Cut)
	}
	s.printf("\n")
}

// showStages prints what each stage has and does.
func showStages(s *session, m *plan.Mesh) {
	s.printf("stage  %-11s  %9s  %6s  %12s  layers\n", "ranks", "kept most", "idle", "memory")
	for i, x := range m.Stages {
		ranks := spanText(model.Span{From: x.First, To: x.Last + 1})
		s.row(fmt.Sprintf("%5d  %-11s  %9d  %4.1f %%  %12s ", i, ranks, x.Peak, 100*x.Idle, memorySize(x.Bytes)),
			layersOf(m, i))
	}
	s.prosef("", "\nkept most: the most micro-batches whose activations a stage keeps at the same time, "+
		"in each chunk. memory: of the rank that needs most in the stage.\n")
}

// layersOf names the layers of a stage and its other parts.
func layersOf(m *plan.Mesh, stage int) string {
	var list []string
	if stage == 0 {
		list = append(list, "embedding")
	}
	for _, x := range m.Stages[stage].Layers {
		list = append(list, spanText(x))
	}
	if stage == len(m.Stages)-1 {
		list = append(list, "head")
	}
	return strings.Join(list, ", ")
}

// spanText names consecutive layers or ranks, from 0.
func spanText(x model.Span) string {
	switch x.To - x.From {
	case 0:
		return "none"
	case 1:
		return fmt.Sprint(x.From)
	}
	return fmt.Sprintf("%d–%d", x.From, x.To-1)
}

// meshJSON returns the output of --json: the mesh, the place of each rank, and the instructions of each stage with
// their times.
func meshJSON(m *plan.Mesh) any {
	type place struct {
		Rank    int `json:"rank"`
		Stage   int `json:"stage"`
		Data    int `json:"data"`
		Context int `json:"context"`
		Tensor  int `json:"tensor"`
	}
	type instr struct {
		Op    string  `json:"op"`
		Micro int     `json:"micro_batch"`
		Chunk int     `json:"chunk"`
		Start float64 `json:"start"`
		End   float64 `json:"end"`
	}
	type stage struct {
		plan.PipelineStage
		Layers  [][2]int `json:"layers"` // per chunk: the first layer, and the first layer after it
		Program []instr  `json:"program"`
	}
	places, stages := []place{}, make([]stage, len(m.Stages))
	for r, at := range m.Places {
		places = append(places, place{r, at.Stage, at.Data, at.Chunk, at.Cut})
	}
	for i := range stages {
		stages[i].PipelineStage = m.Stages[i]
		for _, x := range m.Stages[i].Layers {
			stages[i].Layers = append(stages[i].Layers, [2]int{x.From, x.To})
		}
		for k, x := range m.Lists[i] {
			at := m.Timeline.Spans[i][k]
			stages[i].Program = append(stages[i].Program, instr{x.Op.String(), x.Micro, x.Chunk, at.Start, at.End})
		}
	}
	return struct {
		*plan.Mesh
		Schedule string  `json:"schedule"`
		Total    float64 `json:"step_time"` // in forward passes of a layer
		Ranks    []place `json:"ranks"`
		Stages   []stage `json:"stages"`
	}{m, m.Parallel.Schedule, m.Timeline.Total, places, stages}
}
