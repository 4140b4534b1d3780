package train

import (
	"fmt"
	"runtime"

	"anneal/config"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/device/cpu/gemm"
	"anneal/device/cuda"
	"anneal/internal/isa"
	"anneal/internal/machine"
	"anneal/tensor"
)

// openers maps device names of the config to functions that open them; threads are those of the CPU.
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

// openDevice opens the named device, or the config's if name is "", with the given number of threads, or the config's
// if threads is 0.
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

// wait blocks until a device has finished all calls. Before that, and after a failure, its results must not be used
// or saved.
func wait(dev device.Memory) error {
	if err := dev.Wait(); err != nil {
		return &DeviceError{Err: err}
	}
	return nil
}

// kernels names the kernels of a device; other kernels give other bits.
func kernels(dev device.Device) string {
	switch d := dev.(type) {
	case device.Accelerator:
		return d.Kernels()
	case *cpu.Device:
		return d.Tier().String()
	}
	return dev.Name()
}

// threads returns the number of host threads that a device computes with.
func threads(dev device.Device) int {
	if d, ok := dev.(*cpu.Device); ok {
		return d.Threads()
	}
	return 0
}

// peak returns the peak GFLOP/s of a device's products: measured on the CPU, as reported by other devices.
func peak(dev device.Device, operand tensor.DType) float64 {
	switch d := dev.(type) {
	case device.Accelerator:
		return d.Peak(operand)
	case *cpu.Device:
		return gemm.Peak(d.Tier(), operand, d.Pool(), peakTime)
	}
	return 0
}

// freeMemory returns the bytes available for tensors of a device, 0 if unknown.
func freeMemory(dev device.Device) int64 {
	if d, ok := dev.(device.Accelerator); ok {
		return d.FreeMemory()
	}
	return machine.ReadMemory().Available
}

// A Machine describes the device of a run.
type Machine struct {
	Device    string // "avx512, 2 threads"
	Available int64  // bytes of memory, 0 if unknown
}

// MachineOf examines the device of a valid configuration.
func MachineOf(cfg *config.Config) (Machine, error) {
	if cfg.Device == "cpu" {
		tier, err := isa.Choose()
		threads := "1 thread"
		if n := workers(cfg); n > 1 {
			threads = fmt.Sprintf("%d threads", n)
		}
		return Machine{fmt.Sprintf("%v, %s", tier, threads), machine.ReadMemory().Available}, err
	}
	dev, err := openDevice(cfg, "", 0)
	if err != nil {
		return Machine{Device: cfg.Device}, err
	}
	defer dev.Close()
	return Machine{dev.Name(), freeMemory(dev)}, nil
}

// workers returns the number of threads of a run on the CPU, as package pool chooses it; 0 on other devices.
func workers(cfg *config.Config) int {
	switch n := runtime.GOMAXPROCS(0); {
	case cfg.Device != "cpu":
		return 0
	case cfg.Threads <= 0 || cfg.Threads > n:
		return n
	}
	return cfg.Threads
}

// logitBytes returns the memory for logits that exist at one time. A card needs chunks of thousands of rows: for each
// chunk it converts the head and adds to its gradient, 20 bytes per element, which takes as long as the products of
// 650 rows on an H100.
func logitBytes(card bool) int {
	if card {
		return 512 << 20
	}
	return 0 // the default suits CPU caches
}
