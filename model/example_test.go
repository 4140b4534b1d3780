package model_test

import (
	"fmt"

	"anneal/autograd"
	"anneal/device/cpu"
	"anneal/model"
	"anneal/optim"
	"anneal/precision"
	"anneal/tensor"
)

// A training loop of one's own: a model, a batch, a tape and an optimizer, with the memory that each needs. Package
// train is this loop with everything else that runs want.
func Example() {
	if err := overfit(); err != nil {
		fmt.Println(err)
	}
	// Output: the loss fell: true, then comes 5
}

// overfit trains a small model on one sequence, and lets it continue the beginning.
func overfit() error {
	const rows, length = 2, 8
	dev, err := cpu.New(1)
	if err != nil {
		return err
	}
	defer dev.Close()
	policy, err := precision.Lookup("fp32")
	if err != nil {
		return err
	}
	shape := model.Config{
		Family: "llama", Layers: 2, Dim: 32, Heads: 2, KVHeads: 2, HeadDim: 16, FFN: 64, Context: length, Vocab: 16,
		RopeTheta: 10000, NormEps: 1e-5, InitStd: 0.02,
	}
	rule := optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	size := model.Measure(shape, policy, rows, length, true)
	state, scratch := optim.Measure(rule, model.Outline(shape, policy).Params())
	arenas := map[string]*tensor.Arena{}
	for name, bytes := range map[string]int{
		"parameters": size.Params, "gradients": size.Grads, "kept": size.Keep, "temporary": size.Temp,
		"batch": size.Batch, "state": state, "scratch": scratch,
	} {
		a, err := dev.NewArena(name, bytes)
		if err != nil {
			return err
		}
		defer a.Close()
		arenas[name] = a
	}
	m := model.New(shape, model.MemoryOf(dev, policy, arenas["parameters"], arenas["gradients"]))
	m.Init(1)
	tape := autograd.NewTape(dev, policy.Types(), arenas["kept"], arenas["temporary"])
	batch := model.NewBatch(arenas["batch"], policy, rows, length)
	states := make([]optim.State, len(m.Params()))
	for i, p := range m.Params() {
		states[i] = rule.Layout(arenas["state"], p)
	}
	for i := range rows * length { // 0 1 2 … 7, and each token's target is the next
		batch.Host.Tokens[i], batch.Host.Targets[i], batch.Host.Start[i] = int32(i%length), int32(i%length+1), 0
	}
	batch.SetPositions(true)
	batch.Send(dev)

	var first, last float64
	for step := 1; step <= 30; step++ {
		for _, p := range m.Params() {
			p.ResetGrad()
		}
		tape.Reset(true)
		m.Loss(tape, batch)
		tape.Backward() // gradients of the sum of the losses
		last = 0
		for _, nats := range batch.HostLosses(dev).F32() {
			last += float64(nats) / (rows * length)
		}
		if step == 1 {
			first = last
		}
		for i, p := range m.Params() {
			s := optim.Step{T: step, LR: 1e-2 / float64(1+step/10), Scale: 1.0 / (rows * length)}
			rule.Update(dev, p, states[i], s, arenas["scratch"])
		}
	}
	g, err := model.NewGenerator(m, policy, dev)
	if err != nil {
		return err
	}
	defer g.Close()
	fmt.Printf("the loss fell: %v, then comes %d\n", last < first/4, g.Next([]int32{0, 1, 2, 3, 4}, model.Sampling{}))
	return dev.Wait()
}
