package main

import (
	"os"
	"runtime"
	"strings"

	"anneal/device/cpu/isa"
	"anneal/internal/machine"
	"anneal/lab"
)

type doctorCmd struct{}

func (doctorCmd) Help() string { return example("anneal doctor") }

func (doctorCmd) Run(s *session) error {
	var faults []string
	tier, err := isa.Choose()
	if err != nil {
		return err
	}
	why := "the fastest that this CPU runs"
	if os.Getenv("ANNEAL_CPU") != "" {
		why = "asked for by ANNEAL_CPU"
	}
	var tiers []string
	for _, t := range isa.Tiers() {
		tiers = append(tiers, t.String())
	}
	memory := machine.ReadMemory()
	disk, err := machine.FreeDisk(".")
	if err != nil {
		faults = append(faults, "disk: "+err.Error())
	}
	source, err := lab.GoSource()
	if err != nil {
		faults = append(faults, "demo: "+err.Error())
		source = "not found"
	}

	s.printf("cpu         %s, %d threads\n", orUnknown(machine.CPUName()), runtime.GOMAXPROCS(0))
	s.printf("kernels     %s (%s)\n", tier, why)
	s.printf("            this CPU runs: %s\n", strings.Join(tiers, ", "))
	s.printf("memory      %s available of %s\n", mebibytes(memory.Available), mebibytes(memory.Total))
	s.printf("disk        %s free here\n", megabytes(disk))
	s.printf("go          %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	s.printf("demo text   %s\n", source)
	peak := lab.MeasurePeak(tier, 0)
	s.printf("peak        %.0f GFLOP/s BF16, %.0f GFLOP/s FP32, all threads\n", peak.BF16, peak.FP32)
	s.printf("emulated    %s: rounded exactly, computed in FP32\n", strings.Join(emulated(), ", "))
	for _, f := range faults {
		s.notef("warning: %s", f)
	}
	return s.emit(map[string]any{
		"cpu": machine.CPUName(), "threads": runtime.GOMAXPROCS(0), "tier": tier.String(), "tier_reason": why, "tiers": tiers,
		"memory": memory, "disk_free_bytes": disk, "go": runtime.Version(), "go_source": source,
		"peak_gflops": peak, "emulated": emulated(), "faults": faults,
	})
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
