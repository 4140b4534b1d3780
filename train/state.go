package train

import (
	"fmt"
	"strings"

	"anneal/dataset"
	"anneal/model"
	"anneal/tensor"
	"anneal/train/checkpoint"
)

// state is what a checkpoint holds beside tensors. With the configuration and the data it determines the rest of the run.
type state struct {
	Progress progress      `json:"progress"`
	Data     dataset.State `json:"data"`
	Guard    guard         `json:"guard"`
	Model    model.Config  `json:"model"` // that the weights were trained in
	Tier     string        `json:"tier"`  // of the kernels: another one gives other bits
	// Last results, so that a finished run can report them again.
	TrainLoss      number `json:"train_loss"`
	ValLoss        number `json:"val_loss"`
	ValBitsPerByte number `json:"val_bits_per_byte"`
	EvalStep       int    `json:"eval_step"` // of the two above
}

// checkModel refuses a model in which the weights would fit but compute something else than they were trained to. What
// changes their shapes is noticed when they are loaded.
func (s *state) checkModel(now model.Config, dir runDir) error {
	was := s.Model
	for _, f := range []struct {
		key      string
		was, now any
	}{
		{"heads", was.Heads, now.Heads}, {"kv_heads", was.KVHeads, now.KVHeads}, {"head_dim", was.HeadDim, now.HeadDim},
		{"rope_theta", was.RopeTheta, now.RopeTheta}, {"norm_eps", was.NormEps, now.NormEps},
	} {
		if f.was != f.now {
			return fmt.Errorf("%s has model.%s = %v, but the weights were trained with %v\n  set it back, or start a new run", dir.config(), f.key, f.now, f.was)
		}
	}
	return nil
}

// checkpointTensors lists the live tensors of a run in a fixed order: weights, then both moments.
func (t *Trainer) checkpointTensors() []checkpoint.Tensor {
	list := weightTensors(t.model)
	for i, p := range t.model.Params() {
		for name, x := range t.states[i].Named() {
			s := checkpointTensor(p.Name+"."+name, x)
			s.Optim = true
			list = append(list, s)
		}
	}
	return list
}

// weightTensors lists the live weights of a model.
func weightTensors(m *model.Llama) []checkpoint.Tensor {
	var list []checkpoint.Tensor
	for _, p := range m.Params() {
		list = append(list, checkpointTensor(p.Name, &p.Value))
	}
	return list
}

func checkpointTensor(name string, x *tensor.Tensor) checkpoint.Tensor {
	return checkpoint.Tensor{Name: name, DType: strings.ToUpper(x.DType().String()), Shape: x.Shape(), Data: x.Raw()}
}
