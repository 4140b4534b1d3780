package train

import (
	"fmt"
	"runtime"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/device/cpu/gemm"
	"anneal/device/cpu/isa"
	"anneal/device/cuda"
	"anneal/internal/machine"
	"anneal/tensor"
	"anneal/train/config"
)

// openers open what the config calls device by its names; threads are those of the CPU.
var openers = map[string]func(threads int) (device.Device, error){
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

// openDevice opens the device of a name, that of the config if the name is "", with so many threads, as many as the config has if
// that is 0.
func openDevice(cfg *config.Config, name string, threads int) (device.Device, error) {
	if name == "" {
		name = cfg.Device
	}
	if threads <= 0 {
		threads = cfg.Threads
	}
	open, ok := openers[name]
	if !ok {
		return nil, config.Problem{Key: "device", Message: fmt.Sprintf("device = %q does not exist", name), Try: "cpu or cuda"}
	}
	return open(threads)
}

// wait returns when a device is done with all it was asked for. Before that, and after a failure, nothing it computed is believed
// or saved.
func wait(dev device.Memory) error {
	if err := dev.Wait(); err != nil {
		return &DeviceError{Err: err}
	}
	return nil
}

// kernels says which kernels of a device compute: others give other bits.
func kernels(dev device.Device) string {
	switch d := dev.(type) {
	case device.Accelerator:
		return d.Kernels()
	case *cpu.Device:
		return d.Tier().String()
	}
	return dev.Name()
}

// threads is how many of the host's threads a device computes with.
func threads(dev device.Device) int {
	if d, ok := dev.(*cpu.Device); ok {
		return d.Threads()
	}
	return 0
}

// peak is the GFLOP/s that a device's products could reach: measured on the CPU, else what the device says.
func peak(dev device.Device, operand tensor.DType) float64 {
	switch d := dev.(type) {
	case device.Accelerator:
		return d.Peak(operand)
	case *cpu.Device:
		return gemm.Peak(d.Tier(), operand, d.Pool(), peakTime)
	}
	return 0
}

// freeMemory is how many bytes there are for tensors of a device, 0 if that is not known.
func freeMemory(dev device.Device) int64 {
	if d, ok := dev.(device.Accelerator); ok {
		return d.FreeMemory()
	}
	return machine.ReadMemory().Available
}

// A Machine is what a run would compute with.
type Machine struct {
	Device    string // "avx512, 2 threads"
	Available int64  // bytes of memory, 0 if that is not known
}

// MachineOf looks at what a valid configuration would compute with.
func MachineOf(cfg *config.Config) (Machine, error) {
	if cfg.Device == "cpu" {
		tier, err := isa.Choose()
		return Machine{fmt.Sprintf("%v, %d threads", tier, workers(cfg)), machine.ReadMemory().Available}, err
	}
	dev, err := openDevice(cfg, "", 0)
	if err != nil {
		return Machine{Device: cfg.Device}, err
	}
	defer dev.Close()
	return Machine{dev.Name(), freeMemory(dev)}, nil
}

// workers is how many threads a run on the CPU computes with, as package pool chooses them; 0 on other devices.
func workers(cfg *config.Config) int {
	switch n := runtime.GOMAXPROCS(0); {
	case cfg.Device != "cpu":
		return 0
	case cfg.Threads <= 0 || cfg.Threads > n:
		return n
	}
	return cfg.Threads
}

// logitBytes is how much of the logits exist at one time. A card wants thousands of rows: for each piece of them it converts the head and
// adds to its gradient, 20 bytes an element, which take as long as the products of 650 rows on an H100.
func logitBytes(card bool) int {
	if card {
		return 512 << 20
	}
	return 0 // what a processor's caches like
}
