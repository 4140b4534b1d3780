package hardware

import (
	"math"
	"strings"
	"testing"

	_ "anneal/internal/torture"
)

func TestClustersAreParsed(t *testing.T) {
	for text, want := range map[string][2]int{
		"128x8xh100-80gb": {1024, 8}, "8xa100": {8, 8}, "4xb200": {4, 4}, "2x4xTPU-v5e": {8, 4},
	} {
		c, err := Parse(text)
		if err != nil || c.Devices != want[0] || c.PerNode != want[1] {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for text, want := range map[string]string{
		"8xh10-80gb": "did you mean h100-80gb?", "h100": "no number of devices", "0x8xh100": "0 is not a number",
		"9999999x8xh100": "9999999 is not a number", "4000000x8xh100": "more than",
		"": "no number", "8x": "no accelerator",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

const described8 = `
name: mine
nodes: 4
devices_per_node: 8
peak_tflops: {bf16: 300}
memory_gb: 64
memory_gb_per_second: 1500
network:
  - {name: node, devices: 8, gb_per_second: 200, latency_us: 4}
  - {name: fabric, gb_per_second: 25, latency_us: 10}
`

func TestFilesDescribeClusters(t *testing.T) {
	c, err := Read([]byte(described8))
	if err != nil || c.Devices != 32 || c.Levels[1].Bandwidth != 25e9 || c.Accelerator.BestProduct(FP8) != 240e12 {
		t.Fatalf("%+v, %v", c, err)
	}
	bad := strings.NewReplacer("64", "0", "300", "-1", "200", "nan").Replace(described8)
	_, err = Read([]byte(strings.ReplaceAll(bad, "nan", ".nan")))
	if err == nil {
		t.Fatal("absurd figures are accepted")
	}
	for _, want := range []string{"memory_gb is 0", "peak_tflops.bf16 is -1", "network[0].gb_per_second is NaN"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	for _, text := range []string{"", "nodes: [", "- 1", "speed: 3"} {
		if _, err := Read([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Rings move bytes·(1 − 1/n); whole nodes use all their links; a group with one rank in each node has only its own.
func TestCollectivesAreTheirFormulas(t *testing.T) {
	c, err := Read([]byte(described8))
	if err != nil {
		t.Fatal(err)
	}
	c.SetEfficiency(Efficiency{1, 1, 1})
	const bytes = 1e9
	for _, x := range []struct {
		name string
		op   Collective
		g    Group
		want float64
	}{
		{"gather in a node", AllGather, Group{8, 1}, bytes*(7./8)/200e9 + 7*4e-6},
		{"gather over nodes", AllGather, Group{32, 1}, bytes*(3./4)/(8*25e9) + 7*4e-6 + 3*10e-6},
		{"one rank of each node", AllGather, Group{4, 8}, bytes*(3./4)/25e9 + 3*10e-6},
		{"reduce", AllReduce, Group{4, 8}, 2*bytes*(3./4)/25e9 + 6*10e-6},
		{"alone", AllReduce, Group{1, 1}, 0},
	} {
		if x.name == "gather over nodes" {
			x.want = max(x.want, bytes*(7./8)/200e9+7*4e-6+3*10e-6)
		}
		if got := c.Time(x.op, bytes, x.g); math.Abs(got/max(x.want, 1e-12)-1) > 1e-6 && got != x.want {
			t.Errorf("%s: %.6f s, want %.6f", x.name, got, x.want)
		}
	}
}

func TestEveryKnownAcceleratorIsComplete(t *testing.T) {
	for _, k := range Table {
		if k.BestProduct(BF16) <= 0 || k.Memory <= 0 || k.Bandwidth <= 0 || k.Inside <= 0 || k.Outside <= 0 ||
			k.Source == "" {
			t.Errorf("%s lacks figures: %+v", k.Name, k)
		}
		if best := k.Product[BF16]; best > k.Peak[BF16] {
			t.Errorf("%s: the fastest product is faster than the peak", k.Name)
		}
	}
}
