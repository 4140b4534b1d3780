package study

import (
	"runtime"

	"anneal/config"
	"anneal/internal/buildinfo"
	"anneal/machine"
	"anneal/train"
)

// A Machine is where figures were measured.
type Machine struct {
	CPU     string `json:"cpu"`
	Tier    string `json:"tier"` // the kernels, as ANNEAL_CPU names them
	Cores   int    `json:"cores"`
	Version string `json:"version"` // of the program
}

// ThisMachine returns what figures depend on beside their configurations.
func ThisMachine() (Machine, error) {
	dev, err := train.OpenDevice(config.Default(), "cpu", 1)
	if err != nil {
		return Machine{}, err
	}
	defer dev.Close()
	k := machine.KeyOf(dev)
	return Machine{k.CPU, k.Kernels, runtime.GOMAXPROCS(0), buildinfo.Version}, nil
}
