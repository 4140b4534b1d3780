package main

import (
	"fmt"

	"anneal/internal/svg"
)

// kept is a kind of tensors of the model, such as weights, of which a rank keeps all or its own part.
type kept struct {
	name  string
	bytes float64 // per parameter
	all   bool
}

// stages lists the tensors that a rank keeps at each stage of ZeRO, with AdamW in bf16.
var stages = [][]kept{
	{{"weights", 4, true}, {"gradients", 4, true}, {"optimizer state", 8, true}},
	{{"weights, BF16", 2, true}, {"weights, FP32", 4, false}, {"gradients", 4, true}, {"optimizer state", 8, false}},
	{{"weights, BF16", 2, true}, {"weights, FP32", 4, false}, {"gradients", 4, false}, {"optimizer state", 8, false}},
	{{"weights", 4, false}, {"gradients", 4, false}, {"optimizer state", 8, false}},
}

// sums are the bytes per parameter that a rank keeps, for D ranks.
var sums = []string{"16", "6 + 12/D", "2 + 16/D", "16/D"}

// owners draws the tensors that each of four ranks keeps at each stage: a row for each kind, as tall as its bytes,
// with the parts that the ranks own from left to right.
func owners() []byte {
	const left, top, column, gap, byteHeight, between = 190., 56., 150., 22., 5.5, 34.
	var p svg.Picture
	p.Text(16, 24, "What four ranks keep, by stage of ZeRO (AdamW, bf16; D ranks)", bold)
	for r := range ranks {
		p.Text(left+float64(r)*(column+gap)+column/2, top-8, fmt.Sprintf("rank %d", r), small+middle)
	}
	y := top
	for zero, rows := range stages {
		p.Text(16, y+13, fmt.Sprintf("ZeRO %d", zero), bold)
		p.Text(16, y+29, sums[zero]+" bytes a parameter", small)
		for _, k := range rows {
			h := k.bytes * byteHeight
			for r := range ranks {
				x := left + float64(r)*(column+gap)
				p.Rect(x, y, column, h, `fill="none" stroke="#bbb" stroke-dasharray="3 3"`)
				for part, colour := range ranks {
					if k.all || part == r {
						w := column / float64(len(ranks))
						p.Rect(x+float64(part)*w, y, w, h, fmt.Sprintf(`fill="%s" stroke="#fff"`, colour))
					}
				}
			}
			p.Text(left+4*(column+gap)-gap+8, y+h/2+4, k.name, small)
			y += h + 3
		}
		y += between - 3
	}
	p.Text(16, y, "Height: bytes an element. Colour: the rank that owns the part, sums its gradient and updates it. "+
		"Dashed: not kept.", small)
	return bytesOf(&p, left+4*(column+gap)+110, y+16)
}
