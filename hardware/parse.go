package hardware

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"anneal/internal/nearest"
)

// mostDevices exceeds the number of devices in any machine built so far.
const mostDevices = 1 << 22

// Lookup returns the accelerator with a name; the caller may change it. Case does not matter.
func Lookup(name string) (Known, error) {
	key := strings.ToLower(strings.ReplaceAll(name, " ", "-"))
	var names []string
	for _, k := range Table {
		if k.Name == key || slices.Contains(k.Aliases, key) {
			k.Fitted = fitted[k.Name]
			k.Peak, k.Product, k.Attention = maps.Clone(k.Peak), maps.Clone(k.Product), maps.Clone(k.Attention)
			return k, nil
		}
		names = append(append(names, k.Name), k.Aliases...)
	}
	hint := "known are " + strings.Join(Names(), ", ")
	if near := nearest.To(key, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return Known{}, fmt.Errorf("there is no accelerator %q: %s\n  describe others in a YAML file: --on FILE.yaml",
		name, hint)
}

// Names returns the names of the accelerators in the table.
func Names() (list []string) {
	for _, k := range Table {
		list = append(list, k.Name)
	}
	return list
}

// Parse reads a cluster: 128x8xh100-80gb is 128 nodes of 8, 8xh100-80gb is 8 devices in nodes of the usual size. It
// reports all faults at once.
func Parse(text string) (*Cluster, error) {
	parts := strings.SplitN(strings.ToLower(strings.TrimSpace(text)), "x", 3)
	numbers := 0
	for numbers < len(parts)-1 && numeric(parts[numbers]) {
		numbers++
	}
	var faults []error
	name := strings.Join(parts[numbers:], "x")
	if numbers == 0 {
		faults = append(faults, fmt.Errorf("the cluster %q has no number of devices: "+
			"write NODESxDEVICESxACCELERATOR, such as 128x8xh100-80gb", text))
	}
	var counts []int
	for _, p := range parts[:numbers] {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > mostDevices {
			faults = append(faults, fmt.Errorf("the cluster %q: %s is not a number from 1 to %d", text, p, mostDevices))
			n = 1
		}
		counts = append(counts, n)
	}
	known, err := Lookup(name)
	if err != nil {
		faults = append(faults, err)
	}
	if len(counts) == 2 && counts[0] > mostDevices/counts[1] {
		faults = append(faults, fmt.Errorf("the cluster %q has more than %d devices", text, mostDevices))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if len(counts) == 2 {
		return known.Cluster(counts[0]*counts[1], counts[1]), nil
	}
	return known.Cluster(counts[0], min(counts[0], known.PerNode)), nil
}

func numeric(s string) bool {
	return s != "" && strings.Trim(s, "0123456789-.") == ""
}

// Cluster returns a cluster with that many devices in nodes of perNode. A domain that is larger than the table's node,
// such as an NVL72 rack or a slice of a torus, keeps its size, or as much of it as the cluster fills evenly: 128
// devices are 64 of each of two racks of 72.
func (k Known) Cluster(devices, perNode int) *Cluster {
	a := k.Accelerator
	domain := 0
	inside := Level{Name: "node", Devices: perNode, Bandwidth: k.Inside, Latency: k.Latency[0]}
	if k.Domain > k.PerNode {
		domain = max(k.Domain, perNode)
		inside.Name, inside.Devices = "domain", evenly(devices, perNode, domain)
	}
	outside := Level{Name: "network", Bandwidth: k.Outside, Latency: k.Latency[1]}
	levels := []Level{inside, outside}
	return &Cluster{Accelerator: &a, Devices: devices, PerNode: perNode, Levels: levels, domain: domain}
}

// evenly returns how many devices of each domain a cluster has: the largest number of whole nodes that divides the
// cluster, or the whole domain if that would be less than half of it.
func evenly(devices, node, domain int) int {
	for n := domain / node * node; 2*n >= domain; n -= node {
		if devices%n == 0 {
			return n
		}
	}
	return domain
}
