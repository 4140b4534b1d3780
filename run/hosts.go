package run

import (
	"fmt"
	"runtime"

	"anneal/config"
	"anneal/internal/machine"
	"anneal/internal/units"
)

// site describes where a rank runs. Processes of one host that may use the same cores share them.
type site struct {
	Host  string `json:"host"`
	Cores string `json:"cores"` // that the process may use; "" if unknown
}

// meetHosts finds out which ranks share this host, and how many threads this rank may use unless the number is given.
func (s *session) meetHosts() error {
	s.beside = 1
	if s.world.alone() {
		return nil
	}
	mine := site{hostname(), machine.Cores()}
	all, err := share(s.world, mine)
	if err != nil {
		return err
	}
	s.beside = 0
	same := 0
	for r, other := range all {
		if other.Host == mine.Host {
			if r == s.World.Rank() {
				s.place = s.beside
			}
			s.beside++
		}
		if other == mine {
			same++
		}
	}
	if s.Threads > 0 || s.cfg.Threads > 0 {
		return nil
	}
	s.Threads, err = threadsOf(same, min(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	return err
}

// threadsOf returns the threads of each of the ranks that share cores.
func threadsOf(ranks, cores int) (int, error) {
	if ranks > cores {
		return 0, config.Problem{
			Message: fmt.Sprintf("%d ranks share %s of %s, and each rank needs one", ranks, units.Count(cores, "core"),
				hostname()),
			Try: units.Count(cores, "rank") + " on a host; threads=1 makes ranks take turns on the cores",
		}
	}
	return cores / ranks, nil
}
