package run

import (
	"fmt"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/model"
	"anneal/nn"
	"anneal/tensor"
	"anneal/train"
)

// hold makes the trainer keep weights near their initial values (init.ewc), each by its importance in the run that
// they come from. The importance is AdamW's running mean of squared gradients, an estimate of the diagonal of the
// Fisher information, divided by its mean over all weights. It is read at init.ewc_step, because gradients vanish once
// a task is learnt.
func hold(t *train.Trainer, cfg *config.Config) error {
	source, err := openImportance(cfg)
	if err != nil {
		return err
	}
	sum, n := 0.0, 0
	for _, x := range source {
		for i := range x.Len() {
			sum += x.Float64(i)
		}
		n += x.Len()
	}
	mean := sum / float64(n)
	if !(mean > 0) {
		return ewcProblem(cfg, fmt.Sprintf("the second moments in %s are %g on average", cfg.Init.From, mean),
			"another init.ewc_step")
	}
	for _, p := range t.Model().Params() {
		if x := source[p.Name]; x == nil || x.Len() != p.Len() {
			return ewcProblem(cfg, fmt.Sprintf("%s has another shape in %s", p.Name, cfg.Init.From),
				"the vocabulary and the context of those weights")
		}
	}
	return t.Hold(func(p *nn.Param, host *tensor.Tensor) {
		x := source[p.Name]
		for i := range host.Len() {
			host.SetFloat64(i, x.Float64(i)/mean)
		}
	})
}

// openImportance reads the second moments of the run in init.from, by parameter.
func openImportance(cfg *config.Config) (map[string]*tensor.Tensor, error) {
	d := runDir(cfg.Init.From)
	if !Exists(cfg.Init.From) {
		return nil, ewcProblem(cfg, cfg.Init.From+" is not a run: it has no second moments", "init.from = RUN")
	}
	from, err := d.load()
	if err != nil {
		return nil, err
	}
	step := int64(cfg.Init.EWCStep)
	if step == 0 {
		step = int64(cfg.Init.Step)
	}
	var then state
	info, err := checkpoint.LoadStepState(d.checkpoints(), step, &then)
	if err != nil {
		return nil, fmt.Errorf("init.ewc_step = %d: %w", step, err)
	}
	if o := from.Optimizer; o.Moments == "bf16" || o.Masters == "f64" {
		return nil, ewcProblem(cfg, fmt.Sprintf("%s holds its second moments in another format: it was trained with "+
			"optimizer.moments = %s and optimizer.masters = %s", cfg.Init.From, o.Moments, o.Masters),
			"a run trained with both at f32")
	}
	source := map[string]*tensor.Tensor{}
	var list []checkpoint.Tensor
	for _, p := range model.Declare(from.Model).Params() {
		x := tensor.View(tensor.F32, make([]byte, 4*p.Len()), p.Shape...)
		source[p.Name] = &x
		list = append(list, checkpointTensors([]train.Tensor{train.SecondMoment(p, &x)})...)
	}
	if _, err := checkpoint.Load(d.checkpoints(), info.Name, list, &then); err != nil {
		return nil, ewcProblem(cfg, fmt.Sprintf("%s has no second moments for all weights: it was trained with %s (%v)",
			cfg.Init.From, from.Optimizer.Name, err), "a run trained with optimizer.name = adamw")
	}
	return source, nil
}

func ewcProblem(cfg *config.Config, message, try string) error {
	return config.Problem{Key: "init.ewc", At: cfg.Origin("init.ewc").Place(), Message: message, Try: try}
}
