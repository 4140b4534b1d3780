package main

import (
	"fmt"

	"anneal/internal/svg"
)

// The number of units of the drawn model, and the times of a unit: a forward pass, a backward pass, a transfer of
// weights or of gradients, an addition of received gradients.
const (
	units                          = 4
	forward, backward, send, added = 1., 2., 0.8, 0.35
)

// A lane is the sequence of operations of one part of a rank.
type lane struct {
	name string
	free float64 // when it is free again
	bars []bar
}

type bar struct {
	from, to float64
	text     string
	colour   string
}

// do adds an operation that may begin at the time ready and takes the time takes. It returns the time at which the
// operation ends.
func (l *lane) do(text, colour string, ready, takes float64) float64 {
	from := max(ready, l.free)
	l.free = from + takes
	l.bars = append(l.bars, bar{from, l.free, text, colour})
	return l.free
}

const (
	forwardColour, backwardColour = "#88bbdd", "#4477aa"
	weightColour, gradientColour  = "#ccbb44", "#ee6677"
	addColour, updateColour       = "#aa3377", "#228833"
)

// stage2 is a step of a rank at stages 1 and 2: gradients are sent during the backward pass; the weights of a unit are
// published while the next unit is updated, and the next forward pass begins with the units that have arrived.
func stage2() (compute, link lane) {
	compute, link = lane{name: "computes"}, lane{name: "sends and receives"}
	for u := range units {
		compute.do(fmt.Sprint("F", u+1), forwardColour, 0, forward)
	}
	update(&compute, &link, gradients(&compute, &link, func(int, float64) float64 { return 0 }))
	return compute, link
}

// stage3 is a step of a rank at stage 3: the weights of a unit arrive while another unit computes, and the memory
// holds the weights of two units.
func stage3() (compute, link lane) {
	compute, link = lane{name: "computes"}, lane{name: "sends and receives"}
	arrive := func(u int, ready float64) float64 { return link.do(fmt.Sprint("w", u+1), weightColour, ready, send) }
	here := arrive(0, 0)
	for u := range units {
		began := max(here, compute.free)
		if u+1 < units {
			here = arrive(u+1, began)
		}
		compute.do(fmt.Sprint("F", u+1), forwardColour, began, forward)
	}
	update(&compute, nil, gradients(&compute, &link, arrive))
	return compute, link
}

// gradients draws the backward pass. fetch requests the weights of a unit at a time, and returns the time of their
// arrival. The weights of the last two units are still there from the forward pass.
func gradients(compute, link *lane, fetch func(u int, from float64) float64) (last float64) {
	var here [units]float64
	var came []float64
	for u := units - 1; u >= 0; u-- {
		done := compute.do(fmt.Sprint("B", u+1), backwardColour, here[u], backward)
		came = append(came, link.do(fmt.Sprint("g", u+1), gradientColour, done, send))
		if u >= 2 {
			here[u-2] = fetch(u-2, done) // into the memory of unit u's weights
		}
		if n := len(came); n > 2 {
			compute.do("+", addColour, came[n-3], added)
		}
	}
	for _, t := range came[len(came)-2:] {
		last = compute.do("+", addColour, t, added)
	}
	return last
}

// update draws the part after the gradient: its norm, the update of the owned parameters, and the publishing of their
// weights.
func update(compute, link *lane, ready float64) {
	ready = compute.do("|g|", "#777777", ready, 0.5)
	for u := range units {
		done := compute.do(fmt.Sprint("U", u+1), updateColour, ready, 0.45)
		if link != nil {
			link.do(fmt.Sprint("w", u+1), weightColour, done, send/2)
		}
	}
}

// step draws the timeline of a step.
func step() []byte {
	const left, top, unit, height, between = 150., 60., 38., 26., 8.
	var p svg.Picture
	p.Text(16, 24, "A step of a rank with one micro-batch, of a model of four units", bold)
	y, end := top, 0.
	for _, part := range []struct {
		name string
		draw func() (lane, lane)
	}{{"ZeRO 1 and 2", stage2}, {"ZeRO 3 (FSDP)", stage3}} {
		p.Text(16, y-8, part.name, bold)
		compute, link := part.draw()
		for _, l := range []lane{compute, link} {
			p.Text(16, y+height/2+4, l.name, small)
			for _, b := range l.bars {
				x, w := left+b.from*unit, (b.to-b.from)*unit
				p.Rect(x, y, w, height, fmt.Sprintf(`fill="%s" stroke="#fff"`, b.colour))
				p.Text(x+w/2, y+height/2+4, b.text, `font-size="11" fill="#fff"`+middle)
			}
			end = max(end, l.free)
			y += height + between
		}
		y += 40
	}
	width := left + end*unit + 16
	for i, text := range []string{
		"F, B: forward and backward pass of a unit.  g: its gradient, to the owners.  +: owners add what came, in " +
			"the order of the micro-batches.",
		"|g|: the ranks settle loss, norm and what to do next.  U: owners update.  w: weights arrive. " +
			"Times are made up.",
	} {
		p.Text(16, y-16+float64(i)*18, text, small)
		width = max(width, svg.Width(text, 12)+32)
	}
	return bytesOf(&p, width, y+24)
}
