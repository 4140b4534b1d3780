package hardware

import (
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	limited "anneal/internal/yaml"
)

// described is a cluster as a YAML file has it. Figures are in the units that data sheets use.
type described struct {
	Name     string `yaml:"name"`
	Nodes    int    `yaml:"nodes"`
	PerNode  int    `yaml:"devices_per_node"`
	TFLOPs   rates  `yaml:"peak_tflops"`
	MemoryGB figure `yaml:"memory_gb"`
	GBps     figure `yaml:"memory_gb_per_second"`
	Cores    int    `yaml:"cores"`
	Levels   []struct {
		Name    string `yaml:"name"`
		Devices int    `yaml:"devices"`
		GBps    figure `yaml:"gb_per_second"`
		Micros  figure `yaml:"latency_us"`
	} `yaml:"network"`
	Price float64 `yaml:"price_per_device_hour"`
}

type figure = float64

type rates struct {
	BF16 figure `yaml:"bf16"`
	FP16 figure `yaml:"fp16"`
	FP8  figure `yaml:"fp8"`
	FP4  figure `yaml:"fp4"`
}

// Read reads a cluster from YAML. Missing and absurd figures are refused, all at once.
func Read(text []byte) (*Cluster, error) {
	file, err := limited.Parse(text)
	if err != nil {
		return nil, err
	}
	var d described
	if err := decode(file, &d); err != nil {
		return nil, err
	}
	var faults []error
	need := func(name string, x, least, most float64, unit string) {
		if err := positive(name, x, least, most, unit); err != nil {
			faults = append(faults, err)
		}
	}
	need("nodes", float64(d.Nodes), 1, mostDevices, "nodes")
	need("devices_per_node", float64(d.PerNode), 1, 4096, "devices")
	need("peak_tflops.bf16", d.TFLOPs.BF16, 0.1, 1e5, "TFLOP/s")
	need("peak_tflops.fp16", d.TFLOPs.FP16, 0, 1e5, "TFLOP/s")
	need("peak_tflops.fp8", d.TFLOPs.FP8, 0, 2e5, "TFLOP/s")
	need("peak_tflops.fp4", d.TFLOPs.FP4, 0, 4e5, "TFLOP/s")
	need("memory_gb", d.MemoryGB, 1, 1e5, "GB")
	need("memory_gb_per_second", d.GBps, 1, 1e6, "GB/s")
	need("price_per_device_hour", d.Price, 0, 1e6, "an hour")
	if len(d.Levels) == 0 {
		faults = append(faults, errors.New("network has no levels: give at least one with gb_per_second"))
	}
	c := &Cluster{PerNode: d.PerNode, Devices: d.Nodes * d.PerNode, Price: d.Price}
	for i, l := range d.Levels {
		at := fmt.Sprintf("network[%d]", i)
		need(at+".gb_per_second", l.GBps, 0.001, 1e5, "GB/s, one way, of each device")
		need(at+".latency_us", l.Micros, 0, 1e6, "µs")
		if i < len(d.Levels)-1 {
			need(at+".devices", float64(l.Devices), 1, mostDevices, "devices")
		}
		c.Levels = append(c.Levels, Level{
			Name: l.Name, Devices: l.Devices, Bandwidth: l.GBps * giga, Latency: l.Micros * 1e-6,
		})
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if c.Levels[0].Devices == 0 {
		c.Levels[0].Devices = c.Devices
	}
	peak := map[Precision]float64{BF16: d.TFLOPs.BF16 * tera, FP16: max(d.TFLOPs.FP16, d.TFLOPs.BF16) * tera,
		FP8: d.TFLOPs.FP8 * tera, FP4: d.TFLOPs.FP4 * tera}
	c.Accelerator = &Accelerator{Name: d.Name, Peak: peak, Memory: d.MemoryGB * giga, Bandwidth: d.GBps * giga,
		Cores: d.Cores, Tile: 128, Launch: 4e-6, Attention: other, Source: "the file"}
	return c, nil
}

func decode(file *ast.File, d *described) error {
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return errors.New("the file is empty")
	}
	err := yaml.NewDecoder(emptyReader{}, yaml.Strict()).DecodeFromNode(file.Docs[0].Body, d)
	if err != nil {
		return errors.New(yaml.FormatError(err, false, false))
	}
	return nil
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }
