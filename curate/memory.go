package curate

import (
	"fmt"
	"os"
	"strings"

	"anneal/dedup"
	"anneal/internal/machine"
	"anneal/internal/units"
)

// Memory is the memory that a run may use, in bytes. Each worker holds one document, and the queue of a comparison a
// few. Documents of many megabytes need up to ten times their size in addition.
type Memory struct {
	Base    int64 // of the process
	Workers int64 // buffers of workers for reading, measuring and compressing
	Models  int64 // files that stages have read
	NGrams  int64 // the largest filter of n-grams, outside the heap of the Go runtime
	Sorting int64 // for comparing documents; the rest goes to disk
}

const (
	baseMemory   = 40 << 20
	workerMemory = 32 << 20
	outsideHeap  = 24 << 20 // part of the base outside the heap: the program itself
)

// Total returns the sum.
func (m Memory) Total() int64 { return m.Base + m.Workers + m.Models + m.NGrams + m.Sorting }

// Heap returns the Go runtime's part of the memory, which is the limit for the garbage collector.
func (m Memory) Heap() int64 { return m.Total() - m.NGrams - outsideHeap }

func (m Memory) String() string {
	s := fmt.Sprintf("%d MiB at most: %d for the process and its workers", m.Total()>>20, (m.Base+m.Workers)>>20)
	for _, x := range []struct {
		what string
		n    int64
	}{{"files of stages", m.Models}, {"the Bloom filter of n-grams", m.NGrams}, {"sorting", m.Sorting}} {
		if x.n > 0 {
			s += fmt.Sprintf(", %d for %s", x.n>>20, x.what)
		}
	}
	return s
}

// parts lists the parts of the memory with the options that change them.
func (m Memory) parts(sorting int64) []machine.Part {
	return []machine.Part{
		{What: "the process", Bytes: m.Base}, {What: "its workers", Bytes: m.Workers, Flag: "--threads"},
		{What: "files of stages", Bytes: m.Models},
		{What: "the filter of n-grams", Bytes: m.NGrams, Flag: "ngram_mib of dedup"},
		{What: "sorting", Bytes: sorting, Flag: "--memory"},
	}
}

// Plan divides o.Memory into the parts that are necessary and the rest, which is for sorting. If o.Memory is 0,
// sorting has 1 GiB, or less if less is available. If more is needed than is available, the error is a
// *machine.RoomError.
func (o Options) Plan() (m Memory, err error) {
	workers := o.workers()
	m = Memory{Base: baseMemory, Workers: int64(workers) * workerMemory}
	least := int64(0)
	for _, s := range o.Pipeline.stages {
		if s.compare != nil {
			least = dedup.LeastSorting
			if s.compare.NGrams != nil {
				m.NGrams = max(m.NGrams, s.compare.NGrams.Memory)
			}
		}
		for _, o := range s.kind.options {
			for _, path := range s.files(o) {
				if info, err := os.Stat(path); err == nil {
					m.Models += info.Size()
				}
			}
		}
	}
	need := m.Total() + least
	sorting := least
	if least > 0 {
		sorting = max(least, o.Memory-m.Total())
	}
	if err := machine.Room(o.Available, m.parts(sorting)...); err != nil {
		return m, err
	}
	if o.Memory > 0 && o.Memory < need {
		var list []string
		for _, p := range m.parts(least) {
			if p.Bytes > 0 {
				list = append(list, p.What+" "+units.FormatBytes(p.Bytes))
			}
		}
		return m, fmt.Errorf("--memory %s is too little: at least %s\n  try --memory %dMiB, or fewer --threads",
			units.FormatBytes(o.Memory), strings.Join(list, ", "), need>>20+1)
	}
	switch {
	case least == 0:
	case o.Memory > 0:
		m.Sorting = o.Memory - need + least
	case o.Available > 0:
		m.Sorting = min(dedup.CommonSorting, max(least, machine.Most(o.Available)-need+least))
	default:
		m.Sorting = dedup.CommonSorting
	}
	return m, nil
}
