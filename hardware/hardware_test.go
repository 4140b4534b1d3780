package hardware

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anneal/internal/filetest"
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

// A number may have an exponent without a point, as in YAML 1.2, but no quotes.
// A part of a cluster has the domains of a cluster of that size.
func TestPartsOfAClusterAreClusters(t *testing.T) {
	whole, err := Parse("36x4xgb200")
	if err != nil {
		t.Fatal(err)
	}
	for _, devices := range []int{144, 128, 72, 64, 36} {
		known, err := Lookup("gb200")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := whole.Part(devices), known.Cluster(devices, 4); !reflect.DeepEqual(got, want) {
			t.Errorf("%d of %d devices: %+v, want %+v", devices, whole.Devices, got.Levels, want.Levels)
		}
	}
	if whole.Levels[0].Devices != 72 {
		t.Errorf("the whole cluster has become %+v", whole.Levels)
	}
}

func TestNumbersWithExponents(t *testing.T) {
	for figure, good := range map[string]bool{"1.5e3": true, "15e2": true, `"1500"`: false, "fast": false} {
		text := strings.Replace(described8, "second: 1500", "second: "+figure, 1)
		c, err := Read([]byte(text))
		if (err == nil) != good || good && c.Accelerator.Bandwidth != 1500e9 {
			t.Errorf("%s: %+v, %v", figure, c, err)
		}
	}
}

func TestFilesDescribeClusters(t *testing.T) {
	c, err := Read([]byte(described8))
	if err != nil || c.Devices != 32 || c.Levels[1].Bandwidth != 25e9 || c.Accelerator.BestProduct(FP8) != 240e12 {
		t.Fatalf("%+v, %v", c, err)
	}
	slower := strings.Replace(described8, "bf16: 300", "bf16: 300, fp16: 150", 1)
	if c, err := Read([]byte(slower)); err != nil || c.Accelerator.Peak[FP16] != 150e12 {
		t.Errorf("fp16 below bf16: %+v, %v", c, err)
	}
}

// A bad file is refused with everything that is wrong with it, each with its line, and the names that were meant.
func TestFaultsOfAFileAreReportedAtOnce(t *testing.T) {
	const bad = `name: mine
nodes: 64
device_per_node: 8
peak_tflops: {bf16: fast, fp9: 600}
memory_gb: 9600000
memory_gb_per_second: .nan
cores: 1.5
racks: [1, 2]
network:
  - {name: node, devices: 8, gb_per_second: -200, latency_us: 4}
  - {name: pod, devices: 4, gb_per_second: 25}
  - 7
  - {name: far}
`
	_, err := Read([]byte(bad))
	if err == nil {
		t.Fatal("a bad file is accepted")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		"devices_per_node is missing, must be from 1 to 4096 devices",
		"line 3: there is no key device_per_node: did you mean devices_per_node?",
		"line 4: peak_tflops.bf16 is fast, must be a number of TFLOP/s",
		"line 4: there is no key peak_tflops.fp9: did you mean fp8?",
		"line 5: memory_gb is 9600000, must be from 1 to 100000 GB",
		"line 6: memory_gb_per_second is NaN, must be from 1 to 1000000 GB/s",
		"line 7: cores is 1.5, must be a whole number of cores",
		"line 8: there is no key racks: known are",
		"line 10: network[0].gb_per_second is -200, must be from",
		"line 11: network[1].devices is 4, must be more than the 8 of the level inside it",
		"line 12: network[2] must be keys with values",
		"network[1].latency_us is missing, must be from 0 to 1000000 µs",
		"network[3].gb_per_second is missing",
		"network[3].latency_us is missing",
	}
	if len(got) != len(want) {
		t.Errorf("%d faults are reported, want %d", len(got), len(want))
	}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) }) {
			t.Errorf("no fault begins %q", w)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	for text, want := range map[string]string{
		"nodes: 1\nnodes: 2": "appears twice",
		"":                   "the file is empty", "# nothing": "empty", "nodes: [": "not YAML",
		"- 1":      "must be keys with values",
		"speed: 3": "there is no key speed", "nodes: 1\n---\nnodes: 2": "2 documents",
		strings.Replace(described8, "nodes: 4", "nodes: 4000000", 1):    "more than 4194304 devices",
		strings.Replace(described8, "name: mine", "name: \"a\\eb\"", 1): "name must be a name of 1 to 64 letters",
		strings.Replace(described8, "64", "\"64\"", 1):                  "memory_gb is",
		strings.Replace(described8, "fabric", "fabric, devices: 16", 1): "line 10: network[1].devices is 16, but the " +
			"outermost level must join all 32: leave devices out or add a level",
		strings.Replace(described8, "{name: node, devices: 8", "{name: node, devices: 3", 1): "devices is 3, which " +
			"neither divides a node of 8",
		strings.Replace(described8, "bf16: 300", "bf16: 300, fp8: 1e-9", 1): "must be from 0.1",
		described8 + "price_per_device_hour: -1":                            "-1",
	} {
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Keys that appear twice hide neither each other nor other faults.
func TestAllKeysThatAppearTwiceAreReported(t *testing.T) {
	text := strings.NewReplacer("nodes: 4", "nodes: 4\nnodes: 5", "{bf16: 300}", "{bf16: 300, bf16: 2}",
		"memory_gb: 64\n", "", "latency_us: 10", "latency_us: 10, latency_us: 10").Replace(described8)
	_, err := Read([]byte(text))
	want := []string{
		"line 4: nodes appears twice, first on line 3: remove one of them",
		"line 6: peak_tflops.bf16 appears twice, first on line 6: remove one of them",
		"line 10: network[1].latency_us appears twice, first on line 10: remove one of them",
		"memory_gb is missing, must be from 1 to 100000 GB",
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("%v, want\n%s", err, strings.Join(want, "\n"))
	}
}

// A level without latency is refused; a latency of 0 may be given.
func TestLatencyIsRequired(t *testing.T) {
	for figure, want := range map[string]string{
		"": "network[1].latency_us is missing", ", latency_us: 0": "", ", latency_us: -1": "is -1, must be from 0",
	} {
		c, err := Read([]byte(strings.Replace(described8, ", latency_us: 10", figure, 1)))
		if want == "" && (err != nil || c.Levels[1].Latency != 0) || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", figure, err, want)
		}
	}
}

// Whatever a file holds, it is refused with faults that fit on a few lines, or gives a cluster that times can be
// computed for; memory stays in proportion to the file.
func FuzzRead(f *testing.F) {
	f.Add(described8)
	f.Add("nodes: &a 1\ndevices_per_node: *a\nnetwork: [{<<: *a}]")
	f.Add("name: !!binary x\npeak_tflops: {bf16: 0x1p3, bf16: .inf}\n? [a]\n: b")
	f.Add(strings.NewReplacer("300", "1e999", "8", "08", "name: node", "[1]: 2").Replace(described8))
	f.Fuzz(func(t *testing.T, text string) {
		var c *Cluster
		var err error
		if n := filetest.Allocated(func() { c, err = Read([]byte(text)) }); n > 64<<20 {
			t.Fatalf("%d bytes allocate %d", len(text), n)
		}
		if err != nil {
			if n := len(err.Error()); n > 4096+512*len(text) {
				t.Fatalf("%d bytes of text have an error of %d", len(text), n)
			}
			return
		}
		for _, g := range []Group{{1, 1}, {c.Devices, 1}, {c.PerNode, 1}, {max(1, c.Devices/c.PerNode), c.PerNode}} {
			if s := c.Time(AllReduce, 1e9, g); !(s >= 0) || math.IsInf(s, 0) {
				t.Fatalf("%q: %+v takes %v s", text, g, s)
			}
		}
		if c.Accelerator.BestProduct(FP8) <= 0 || c.Devices < 1 || c.Nodes() < 1 || c.Price < 0 {
			t.Fatalf("%q: %+v", text, c)
		}
	})
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
		{"across a node", AllGather, Group{6, 1}, bytes*(2./3)/(2*25e9) + 4e-6 + 2*10e-6},
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

// Changing an accelerator that was looked up leaves the table as it is.
func TestWhatIsLookedUpMayBeChanged(t *testing.T) {
	was, err := Lookup("h100")
	if err != nil {
		t.Fatal(err)
	}
	peak := was.Peak[BF16]
	was.Peak[BF16] = 1
	if again, _ := Lookup("h100"); again.Peak[BF16] != peak {
		t.Errorf("%v FLOP/s, want %v", again.Peak[BF16], peak)
	}
}
