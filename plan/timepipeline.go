package plan

import (
	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/program"
	"anneal/train"
)

// pipelineTime predicts a step of a pipeline. The kernel calls of a rank of each stage give the times of its
// instructions; the lists of the stages are simulated with these times. Messages take no time, because ranks of a
// process read each other's memory. A stage may work after the end of its list while other stages are still busy with
// theirs.
func (t *Time) pipelineTime(cfg *config.Config, dev device.Properties, d Documents,
	rate func(device.Call) (float64, bool)) error {
	_, _, stages := cfg.Parallel.Mesh()
	ranks := cfg.Parallel.Ranks
	schedule, err := program.Parse(cfg.Parallel.Schedule)
	if err != nil {
		return err
	}
	micros := microBatches(cfg, ranks/cfg.Parallel.Shared())
	lists, err := schedule.Fit(stages, micros)
	if err != nil {
		return err
	}
	parts := stages * schedule.Chunks
	c := program.Costs{
		Forward: make([]float64, parts), BackwardInput: make([]float64, parts), BackwardWeights: make([]float64, parts),
	}
	rest := make([]float64, stages)
	for s := range stages {
		rec, err := train.RecordStep(cfg, dev, absent.New(s*ranks/stages, ranks, false), d.Pairs)
		if err != nil {
			return err
		}
		kernels, err := kernelsOf(rec, rate)
		if err != nil {
			return err
		}
		for _, k := range kernels {
			a, is := k.Action.(train.Action)
			each := k.Seconds / float64(micros)
			switch {
			case !is:
				rest[s] += k.Seconds
			case a.Op == program.Forward || a.Op == program.ReceiveForward || a.Op == program.SendForward:
				c.Forward[a.Chunk*stages+s] += each
			case a.Op == program.BackwardWeights:
				c.BackwardWeights[a.Chunk*stages+s] += each
			default:
				c.BackwardInput[a.Chunk*stages+s] += each
			}
			t.count(k, 1/float64(stages))
		}
	}
	line, err := program.Simulate(lists, c)
	if err != nil {
		return err
	}
	for s, list := range line.Spans {
		t.Step = max(t.Step, list[len(list)-1].End+rest[s])
	}
	t.Idle = line.IdleShare()
	return nil
}
