package hardware

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"anneal/internal/yaml"
)

// Read reads a cluster from YAML, in the units that data sheets use; docs/planning.md has an example. It refuses
// unknown keys, missing figures and absurd figures, and reports them all at once: the error joins a Fault for each.
func Read(text []byte) (*Cluster, error) {
	file, err := yaml.Parse(text, parser.AllowDuplicateMapKey()) // open reports each such key
	if err != nil {
		var e *yaml.Error
		if errors.As(err, &e) {
			err = Fault{Line: e.Line, Message: (&yaml.Error{Message: e.Message, Try: e.Try}).Error()}
		}
		return nil, err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.NullType {
		return nil, Fault{Message: "the file is empty"}
	}
	if len(file.Docs) > 1 {
		return nil, Fault{Message: fmt.Sprintf("there are %d documents in the file, must be one", len(file.Docs))}
	}
	var faults []Fault
	c := describe(open("", file.Docs[0].Body, &faults))
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.order(), b.order()) })
	var all []error
	for _, f := range faults {
		all = append(all, f)
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	return c, nil
}

// describe reads the cluster of a file. The result is valid only if there are no faults.
func describe(s *section) *Cluster {
	a := &Accelerator{Name: s.text("name", "device"), Tile: 128, Launch: 4e-6, Attention: other, Source: "the file"}
	nodes := s.count("nodes", 1, mostDevices, "nodes")
	c := &Cluster{Accelerator: a, PerNode: s.count("devices_per_node", 1, 4096, "devices")}
	a.Peak = peaks(s.inner("peak_tflops"))
	a.Memory = gibi * s.figure("memory_gb", 1, 1e5, "GB")
	a.Bandwidth = giga * s.figure("memory_gb_per_second", 1, 1e6, "GB/s")
	a.Cores = s.count("cores", 0, 1e4, "cores")
	c.Levels = levels(s.list("network"), c.PerNode, nodes*c.PerNode)
	c.Price = s.figure("price_per_device_hour", 0, 1e6, "an hour")
	s.close()
	if c.Devices = nodes * c.PerNode; c.Devices > mostDevices {
		s.fault(nil, "nodes × devices_per_node = %d × %d are more than %d devices", nodes, c.PerNode, mostDevices)
	}
	if len(c.Levels) > 0 && c.Levels[0].Devices == 0 {
		c.Levels[0].Devices = c.Devices
	}
	return c
}

func peaks(s *section) map[Precision]float64 {
	defer s.close()
	const unit = "TFLOP/s"
	bf16 := tera * s.figure("bf16", 0.1, 1e5, unit)
	other := func(key string, most float64) float64 { // 0 if it is not given
		if s.take(key) == nil {
			return 0
		}
		return tera * s.figure(key, 0.1, most, unit)
	}
	return map[Precision]float64{
		BF16: bf16, FP16: cmp.Or(other("fp16", 1e5), bf16), FP8: other("fp8", 2e5), FP4: other("fp4", 4e5),
	}
}

// levels reads the levels of a network of so many devices. Each joins whole groups of the one inside it, and nodes
// whole groups of it, or it whole nodes.
func levels(sections []*section, node, all int) (list []Level) {
	inside := 0
	for i, s := range sections {
		l := Level{Name: s.text("name", fmt.Sprint("level ", i)), Bandwidth: giga * s.figure("gb_per_second", 0.001,
			1e5, "GB/s, one way, of each device"), Latency: 1e-6 * s.required("latency_us", 0, 1e6, "µs")}
		least := 1
		if i == len(sections)-1 {
			least = 0 // the outermost level joins all
		}
		l.Devices = s.count("devices", least, mostDevices, "devices")
		if n := l.Devices; n > 0 && n <= inside {
			s.fault(s.values["devices"], "%sdevices is %d, must be more than the %d of the level inside it", s.name, n,
				inside)
		} else if least == 0 && n > 0 && n < all {
			s.fault(s.values["devices"], "%sdevices is %d, but the outermost level must join all %d: leave devices "+
				"out or add a level", s.name, n, all)
		}
		if n := l.Devices; n > inside && node > 0 && (n%max(inside, 1) != 0 || n%node != 0 && node%n != 0) {
			s.fault(s.values["devices"], "%sdevices is %d, which neither divides a node of %d nor joins whole nodes, "+
				"or splits a group of the level inside it", s.name, n, node)
		}
		inside = max(inside, l.Devices)
		s.close()
		list = append(list, l)
	}
	return list
}
