package train

import (
	"fmt"

	"anneal/config"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/device/cuda"
)

// Devices maps device names of the config to functions that open them; threads are those of the CPU.
var Devices = map[string]func(threads int) (device.Device, error){
	"cpu":  func(threads int) (device.Device, error) { return cpu.New(threads) },
	"cuda": openCUDA,
}

func openCUDA(int) (device.Device, error) {
	dev, err := cuda.Open(0)
	if err != nil {
		return nil, &DeviceError{Err: err}
	}
	return dev, nil
}

// OpenDevice opens the named device, or the config's if name is "", with the given number of threads, or the config's
// if threads is 0. The caller closes it.
func OpenDevice(cfg *config.Config, name string, threads int) (device.Device, error) {
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
	return open(threads)
}

// AbsentDevice returns what is known of the named device where it cannot be opened.
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
