package train

import (
	"fmt"

	"anneal/config"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/device/cuda"
)

// Devices maps device names of the config to functions that open them. threads is the number of CPU threads, place the
// number of this rank among the ranks of its machine.
var Devices = map[string]func(threads, place int) (device.Device, error){
	"cpu":  openCPU,
	"cuda": openCUDA,
}

func openCPU(threads, _ int) (device.Device, error) {
	dev, err := cpu.New(threads)
	if err != nil {
		return nil, err // not dev, whose nil pointer would make an interface that is not nil
	}
	return dev, nil
}

func openCUDA(_, place int) (device.Device, error) {
	dev, err := cuda.OpenAt(place)
	if err != nil {
		return nil, &DeviceError{Err: err}
	}
	return dev, nil
}

// OpenDevice opens the named device, or the config's if name is "", with the given number of threads, or the config's
// if threads is 0. The caller closes it.
func OpenDevice(cfg *config.Config, name string, threads int) (device.Device, error) {
	return OpenRankDevice(cfg, name, threads, 0)
}

// OpenRankDevice is OpenDevice for one of the ranks of a machine, counted from 0: each has a GPU of its own.
func OpenRankDevice(cfg *config.Config, name string, threads, place int) (device.Device, error) {
	if name == "" {
		name = cfg.Device
	}
	if threads <= 0 {
		threads = cfg.Threads
	}
	open, ok := Devices[name]
	if !ok {
		return nil, config.Problem{
			Key: "device", Message: fmt.Sprintf("device = %q does not exist", name), Try: "cpu or cuda",
		}
	}
	if err := cfg.CheckKernels(name); err != nil {
		return nil, err
	}
	return open(threads, place)
}

// AbsentDevice returns the known properties of the named device on a machine where it cannot be opened.
func AbsentDevice(name string) device.Properties {
	if name == "cuda" {
		return cuda.Absent{}
	}
	return device.Unknown{}
}

// Wait blocks until a device has finished all calls. Before that, and after a failure, its results must not be used
// or saved.
func Wait(dev device.Memory) error {
	if err := dev.Wait(); err != nil {
		return &DeviceError{Err: err}
	}
	return nil
}
