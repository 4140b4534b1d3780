package train

import (
	"anneal/config"
	"anneal/device"
	"anneal/device/disk"
	"anneal/internal/units"
	"anneal/tensor"
)

// moves holds what a run keeps in a file instead of memory (memory.offload). The zero value keeps nothing there.
type moves struct {
	file   *disk.Memory
	state  *offload
	inputs *inputs
}

// open makes the file of a run that has one, and returns its arenas.
func (m *moves) open(cfg *config.Config, dev device.Device, f *Footprint) (arenas []*tensor.Arena, err error) {
	if len(cfg.Memory.Offload) == 0 {
		return nil, nil
	}
	if dev.Apart() {
		return nil, config.Problem{
			Key: "memory.offload", Message: "memory.offload works on CPUs only", Try: "device = cpu",
		}
	}
	if m.file, err = disk.New(cfg.Memory.OffloadDir); err != nil {
		return nil, fileProblem(f, err)
	}
	for _, p := range []Part{{offloadedState, f.Offloaded}, {offloadedInputs, f.OffloadedInputs}} {
		a, err := m.file.NewArena(p.Name, int(p.Bytes))
		if err != nil {
			return nil, fileProblem(f, err)
		}
		arenas = append(arenas, a)
	}
	return arenas, nil
}

// fileProblem says that there is no room for the file of a run.
func fileProblem(f *Footprint, err error) error {
	return config.Problem{
		Key: "memory.offload_dir", Message: "memory.offload: " + err.Error(),
		Try: "memory.offload_dir = a directory on a disk with " +
			units.FormatBytes(f.Offloaded+f.OffloadedInputs) + " of room",
	}
}

// start serves the transfers of the offloaded inputs and state; either may be nil.
func (m *moves) start(state *offload, x *inputs) {
	m.state, m.inputs = state, x
	if state != nil {
		state.start(m.file, state.move)
	}
	if x != nil {
		x.start(m.file, x.move)
	}
}

// close ends the transfers and frees the file.
func (m *moves) close() {
	if m.state != nil {
		m.state.close()
	}
	if m.inputs != nil {
		m.inputs.close()
	}
	if m.file != nil {
		m.file.Close()
	}
	*m = moves{}
}
