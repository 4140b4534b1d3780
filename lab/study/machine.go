package study

import (
	"runtime"

	"anneal/config"
	"anneal/internal/buildinfo"
	"anneal/machine"
	"anneal/train"
)

// A Machine describes the machine that figures were measured on.
type Machine struct {
	CPU     string `json:"cpu"`
	Tier    string `json:"tier"` // the kernels, by their name for ANNEAL_CPU
	Cores   int    `json:"cores"`
	Version string `json:"version"` // of the program
}

// ThisMachine returns the properties of this machine that figures depend on.
func ThisMachine() (Machine, error) {
	dev, err := train.OpenDevice(config.Default(), "cpu", 1)
	if err != nil {
		return Machine{}, err
	}
	defer dev.Close()
	k := machine.KeyOf(dev)
	return Machine{k.CPU, k.Kernels, runtime.GOMAXPROCS(0), buildinfo.Version}, nil
}
