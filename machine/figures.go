package machine

import (
	"fmt"

	"anneal/device"
)

// A Figure is a speed of the machine, for the user: the predicted speed of a call.
type Figure struct {
	Group  string    `json:"group"` // products, attention, passes over memory, updates
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"` // by section
}

// Figures returns the speeds that say most about a machine, without those of kernels that were not measured.
func (p *Profile) Figures() []Figure {
	var list []Figure
	var sections []*rates
	for _, s := range p.Sections {
		sections = append(sections, newRates(s.Samples))
	}
	add := func(group, name, unit string, c device.Call, work float64) {
		f := Figure{Group: group, Name: name, Unit: unit}
		for _, r := range sections {
			if r.classes[classOf(c)] == nil {
				return
			}
			seconds, _ := r.seconds(c)
			f.Values = append(f.Values, work/seconds/1e9)
		}
		list = append(list, f)
	}
	for _, t := range []struct{ name, in, sums string }{
		{"bf16", "bf16 bf16 f32 bf16", "f32 bf16 bf16 bf16"}, {"fp32", "f32 f32 f32 f32", "f32 f32 f32 f32"},
	} {
		for _, form := range []device.Form{device.NT, device.NN, device.TN} {
			types := t.in
			if form == device.TN {
				types = t.sums
			}
			for _, side := range []int{256, 512, 1024} {
				c := device.Call{Kernel: "MatMul " + form.String(), Types: types, M: side, N: side, K: side}
				c.Ops = 2 * float64(side) * float64(side) * float64(side)
				add("products", fmt.Sprintf("%s %v %d³", t.name, form, side), "GFLOP/s", c, c.Ops)
			}
		}
	}
	for _, a := range []struct {
		name, kernel, types string
		perPair             float64
	}{
		{"bf16 forward", "Attention", "bf16 f32 bf16", 4},
		{"bf16 backward", "AttentionGrad", "bf16 bf16 bf16 f32 bf16", 10},
		{"fp32 forward", "Attention", "f32 f32 f32", 4},
		{"fp32 backward", "AttentionGrad", "f32 f32 f32 f32 f32", 10},
	} {
		for _, length := range []int{256, 1024} {
			c := device.Call{Kernel: a.kernel, Types: a.types, M: 2048, N: 8, K: 64}
			c.Ops = a.perPair * 2048 * 8 * 64 * float64(length+1) / 2
			add("attention", fmt.Sprintf("%s, rows of %d", a.name, length), "GFLOP/s", c, c.Ops)
		}
	}
	for _, m := range passes {
		for _, size := range []float64{1e6, 30e6} {
			c := device.Call{Kernel: m.kernel, Types: m.types, Bytes: size}
			add(m.group, fmt.Sprintf("%s, %.0f MB", m.name, size/1e6), "GB/s", c, c.Bytes)
		}
	}
	return list
}

// passes are kernels that memory bounds, in the storage of bf16.
var passes = []struct{ group, name, kernel, types string }{
	{"passes over memory", "norm", "RMSNorm", "bf16 bf16 f32 f32 f32"},
	{"passes over memory", "gradient of the norm", "RMSNormGrad", "f32 f32 bf16 bf16 f32 f32"},
	{"passes over memory", "SwiGLU", "SwiGLU", "bf16 bf16"},
	{"passes over memory", "GELU", "GELU", "bf16 bf16"},
	{"passes over memory", "cross-entropy", "CrossEntropy", "f32 bf16 f32 i32"},
	{"updates", "adamw", "AdamW", "f32 f32 f32 f32"},
	{"updates", "adam8bit", "AdamW8", "f32 f32 u8 f32 u8 f32"},
	{"updates", "sgd with momentum", "Momentum", "f32 f32 f32"},
	{"updates", "lion", "Lion", "f32 f32 f32"},
	{"updates", "ademamix", "AdEMAMix", "f32 f32 f32 f32 f32"},
	{"updates", "adafactor", "Adafactor", "f32 f32 f32 f32"},
	{"updates", "sophia", "Sophia", "f32 f32 f32 f32"},
}

// Launch returns the least time of a call in a section, in seconds: the cost of a kernel call with almost no work.
func (s *Section) Launch() float64 {
	least := 0.0
	for i, x := range s.Samples {
		if i == 0 || x.Seconds < least {
			least = x.Seconds
		}
	}
	return least
}
