package main

import (
	"os"
	"runtime"
	"strings"
	"time"

	"anneal/bench"
	"anneal/device/cuda"
	"anneal/internal/isa"
	"anneal/internal/machine"
	"anneal/internal/units"
	"anneal/prepare"
)

type doctorCmd struct {
	Machine doctorMachineCmd `cmd:"" default:"1" help:"Show this machine's kernels, memory, disk and GPU. The same as anneal doctor."`
	MPI     doctorMPICmd     `cmd:"" name:"mpi" help:"Show the MPI library and its signal handlers, and measure how fast ranks exchange data."`
}

type doctorMachineCmd struct{}

func (doctorMachineCmd) Help() string {
	return example("anneal doctor machine --json", "anneal doctor")
}

func (doctorMachineCmd) Run(s *session) error {
	start := time.Now()
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
	source, err := prepare.GoSource()
	if err != nil {
		faults = append(faults, "demo: "+err.Error())
		source = "not found"
	}

	s.printf("cpu         %s, %d threads\n", orUnknown(machine.CPUName()), runtime.GOMAXPROCS(0))
	s.printf("kernels     %s (%s)\n", tier, why)
	s.printf("            this CPU runs: %s\n", strings.Join(tiers, ", "))
	s.printFault(kernelsNote())
	s.printf("memory      %s available of %s\n", known(memory.Available, memorySize), known(memory.Total, memorySize))
	s.printf("disk        %s free here\n", known(disk, units.FormatSize))
	s.printf("go          %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	s.printf("demo text   %s\n", source)
	peak := bench.MeasurePeak(tier, 0)
	s.printf("peak        %s BF16, %s FP32, all threads\n", units.Rate(peak.BF16), units.Rate(peak.FP32))
	gpu := cuda.Examine()
	s.printCUDA(gpu)
	s.printf("emulated    %s: rounded exactly, computed in FP32\n", strings.Join(emulated(), ", "))
	for _, f := range faults {
		s.sayf("warning: %s", f)
	}
	s.closing("checked", "", time.Since(start), "anneal demo")
	return s.emit(map[string]any{
		"cpu": machine.CPUName(), "threads": runtime.GOMAXPROCS(0), "tier": tier.String(), "tier_reason": why,
		"tiers": tiers, "memory": memory, "disk_free_bytes": disk, "go": runtime.Version(), "go_source": source,
		"peak_gflops": peak, "emulated": emulated(), "cuda": gpu, "faults": faults,
	})
}

// printCUDA lists GPUs and CUDA libraries, or what is missing and how to get it.
func (s *session) printCUDA(r cuda.Report) {
	if !r.Built {
		s.printf("cuda        not in this binary: go build -tags cuda ./cmd/anneal\n")
		return
	}
	for _, c := range r.Cards {
		s.printf("cuda        %s, compute capability %s, %s free of %s\n",
			c.Name, c.Capability, memorySize(int64(c.Free)), memorySize(int64(c.Memory)))
		s.printFault(c.Fault)
	}
	if len(r.Cards) == 0 {
		s.printf("cuda        no GPU\n")
	}
	for _, l := range r.Libraries {
		if l.Fault == "" {
			s.printf("            %s %s, %s\n", l.Name, l.Version, l.Path)
		}
		s.printFault(l.Fault)
	}
}

// printFault prints an error of any number of lines, indented.
func (s *session) printFault(fault string) {
	if fault != "" {
		s.printf("            %s\n", strings.ReplaceAll(fault, "\n", "\n            "))
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// known writes a size, which is 0 if the system does not report it.
func known(n int64, write func(int64) string) string {
	if n == 0 {
		return "an unknown amount"
	}
	return write(n)
}
