package hardware

import (
	"fmt"
	"slices"
)

// A Cluster is a number of accelerators of one kind and the network between them.
type Cluster struct {
	Accelerator *Accelerator `json:"accelerator"`
	Devices     int          `json:"devices"`
	PerNode     int          `json:"devices_per_node"`
	Levels      []Level      `json:"levels"` // of the network, the innermost first
	Price       float64      `json:"price_per_device_hour,omitempty"`

	domain int // most devices of the innermost level, if it is a domain of several nodes
}

// Part returns a cluster of some of the devices.
func (c *Cluster) Part(devices int) *Cluster {
	part := *c
	if part.Devices = devices; c.domain > 0 {
		part.Levels = slices.Clone(c.Levels)
		part.Levels[0].Devices = evenly(devices, c.PerNode, c.domain)
	}
	return &part
}

// A Level of a network joins units of Devices accelerators. A device sends through the level at Bandwidth.
type Level struct {
	Name      string  `yaml:"name" json:"name"`
	Devices   int     `yaml:"devices" json:"devices"` // devices that it joins; 0: all
	Bandwidth float64 `yaml:"-" json:"bytes_per_second"`
	Latency   float64 `yaml:"-" json:"latency_seconds"` // of one message
}

// joins returns how many devices a level joins.
func (c *Cluster) joins(level int) int {
	if n := c.Levels[level].Devices; n > 0 && level < len(c.Levels)-1 {
		return min(n, c.Devices)
	}
	return c.Devices
}

// Nodes returns the number of nodes.
func (c *Cluster) Nodes() int { return (c.Devices + c.PerNode - 1) / c.PerNode }

// String returns the cluster in the form that Parse reads.
func (c *Cluster) String() string {
	if c.Devices%c.PerNode != 0 {
		return fmt.Sprintf("%dx%s", c.Devices, c.Accelerator.Name)
	}
	return fmt.Sprintf("%dx%dx%s", c.Nodes(), c.PerNode, c.Accelerator.Name)
}
