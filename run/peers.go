package run

import (
	"fmt"
	"os"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/buildinfo"
)

// peer is the description of a rank that it sends to the others before the run begins. The fields after the process id
// must be the same on all ranks.
type peer struct {
	Host    string         `json:"host"`
	PID     int            `json:"pid"`
	Version string         `json:"version"`
	Kernels string         `json:"kernels"`
	Config  *config.Config `json:"config"`
	Data    dataset.State  `json:"data"`
}

// checkPeers returns an error unless all ranks will make the same run with the same bits.
func (s *session) checkPeers() error {
	if s.world.alone() {
		return nil
	}
	all, err := share(s.world, peer{
		hostname(), os.Getpid(), buildinfo.String(), s.dev.Kernels(), s.cfg, s.corpus.Train.State(0),
	})
	if err != nil {
		return err
	}
	for rank := range all {
		if err := all[0].check(&all[rank], rank); err != nil {
			return s.world.same(&UnfitError{err})
		}
	}
	return nil
}

// own lists the keys in which ranks may differ, because hosts have their own devices, cores and directories.
var own = map[string]bool{"device": true, "threads": true, "data.path": true, "data.mix": true}

// check compares another rank with the leader.
func (p *peer) check(other *peer, rank int) error {
	differ := func(what, ours, theirs, try string) error {
		return config.Problem{Message: fmt.Sprintf("%s: %s on rank 0 (%s), %s on rank %d (%s)",
			what, ours, p.Host, theirs, rank, other.Host), Try: try}
	}
	switch {
	case other.Version != p.Version:
		return differ("the ranks run different versions of anneal", p.Version, other.Version,
			"the same binary on every host")
	case other.Kernels != p.Kernels:
		return differ("the ranks compute with different kernels, which give different bits", p.Kernels, other.Kernels,
			"kernels that all hosts have, such as ANNEAL_CPU=avx2 in the environment of every rank")
	}
	for _, d := range other.Config.Differences(p.Config) {
		if !own[d.Key] {
			return differ("the ranks have different configurations", fmt.Sprintf("%s = %s", d.Key, d.Was), d.Now,
				"the same command and the same files on every host")
		}
	}
	if other.Data != p.Data {
		return differ("the ranks read different data", short(p.Data.Data), short(other.Data.Data),
			"a copy of the same data set on every host")
	}
	return nil
}

func short(fingerprint string) string { return fmt.Sprintf("%.12s…", fingerprint) }
