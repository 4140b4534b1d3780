package main

import (
	"bytes"
	"fmt"
	"log"

	"anneal/program"
	"anneal/program/draw"
)

// pipelines draws a step of 8 micro-batches on 4 stages by each schedule, with equal layers and a backward pass that
// takes as long as two forward passes.
func pipelines() []byte {
	const stages, micro = 4, 8
	var panels []draw.Panel
	for _, name := range []string{"gpipe", "1f1b", "interleaved:2", "zb-h1"} {
		s, err := program.Parse(name)
		if err != nil {
			log.Fatal(err)
		}
		lists, err := s.Make(stages, micro)
		if err != nil {
			log.Fatal(err)
		}
		line, err := program.Simulate(lists, program.Even(stages, s.Chunks, 1, 1, 1))
		if err != nil {
			log.Fatal(err)
		}
		title := fmt.Sprintf("%s: %v, idle %.1f %%", name, line.Total, 100*line.IdleShare())
		panels = append(panels, draw.Panel{Title: title, Lists: lists, Chunks: s.Chunks, Timeline: line})
	}
	var b bytes.Buffer
	if err := draw.SVG(&b, panels); err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}
