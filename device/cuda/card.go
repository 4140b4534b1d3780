//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"

	"anneal/device/cuda/driver"
)

// A Card is a GPU of this machine.
type Card struct {
	Index           int
	Name            string // "NVIDIA H100 80GB HBM3"
	Capability      int    // 90 for 9.0, Hopper
	Multiprocessors int
	MHz             int     // maximum clock of its multiprocessors
	Memory          int     // bytes
	Bandwidth       float64 // bytes per second, from the memory's clock; 0 if unknown

	handle driver.Card
}

// oldestCapability is Ampere: the first with BF16 instructions and asynchronous copies.
const oldestCapability = 80

// findCard returns card i if it supports the kernels.
func findCard(drv *driver.Driver, i int) (Card, error) {
	n, err := drv.Count()
	if err != nil {
		return Card{}, err
	}
	if n == 0 {
		return Card{}, errors.New("the driver finds no GPU\n" +
			"  check the output of nvidia-smi, and that CUDA_VISIBLE_DEVICES does not hide the GPU")
	}
	if i < 0 || i >= n {
		return Card{}, fmt.Errorf("there is no GPU %d: this machine has %d, counted from 0", i, n)
	}
	c, err := describeCard(drv, i)
	if err == nil && c.Capability < oldestCapability {
		err = fmt.Errorf("%s has compute capability %d.%d, but %d.%d or more is needed: an Ampere card or later",
			c.Name, c.Capability/10, c.Capability%10, oldestCapability/10, oldestCapability%10)
	}
	return c, err
}

func describeCard(drv *driver.Driver, i int) (Card, error) {
	c := Card{Index: i}
	var err error
	if c.handle, err = drv.Card(i); err != nil {
		return c, err
	}
	if c.Name, err = drv.Name(c.handle); err != nil {
		return c, err
	}
	if c.Memory, err = drv.TotalMemory(c.handle); err != nil {
		return c, err
	}
	read := func(a driver.Attribute) int {
		n, e := drv.Attribute(c.handle, a)
		err = errors.Join(err, e)
		return n
	}
	c.Capability = 10*read(driver.CapabilityMajor) + read(driver.CapabilityMinor)
	c.Multiprocessors = read(driver.Multiprocessors)
	c.MHz = read(driver.ClockRate) / 1000
	// two transfers per clock
	c.Bandwidth = 2 * 1e3 * float64(read(driver.MemoryClockRate)) * float64(read(driver.MemoryBusWidth)) / 8
	return c, err
}

// Peak returns the operations per second of dense products: of 16-bit operands with sums in FP32, and of FP32
// operands. It multiplies the figure per multiprocessor from NVIDIA's white papers by clock and number; 0 for an
// unknown generation. Hopper is rated at 1,830 MHz, although its clock is higher when tensor cores have little to do.
func (c Card) Peak() (half, single float64) {
	perClock := map[int][2]float64{80: {2048, 128}, 86: {512, 256}, 87: {1024, 256}, 89: {1024, 256}, 90: {4096, 256},
		100: {8192, 256}, 120: {1024, 256}}[c.Capability]
	mhz := c.MHz
	if c.Capability == 90 {
		mhz = min(mhz, 1830)
	}
	clocks := 1e6 * float64(mhz) * float64(c.Multiprocessors)
	return perClock[0] * clocks, perClock[1] * clocks
}
