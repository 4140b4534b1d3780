package run

import (
	"fmt"
	"strings"

	"anneal/config"
)

// harmless are the keys that do not change a bit of a run's result. The paths of the data and the names of its
// sources are among them, because fingerprints identify the data.
var harmless = map[string]bool{
	"device":  true, // the state names its kernels
	"threads": true, "data.path": true, "data.mix": true, "train.minutes": true, "train.log_every": true,
	"train.noise_scale_every": true, "train.eval_every": true, "train.eval_tokens": true, "checkpoint.every": true,
	"checkpoint.keep": true, "checkpoint.max_failures": true, "guard.rewinds": true, "guard.replay_every": true,
	"watchdog.enabled": true, "watchdog.exit": true, "guard.rewound": true,
	"memory.recompute": true, "parallel.ranks": true, "parallel.zero": true, "parallel.timeout": true,
}

// Changes lists the keys with different values that affect the result of a run, as "key: was → now", in the order of
// the file.
func Changes(was, now *config.Config) []string { return changes(was, now, false) }

// changes is Changes, or, with all, lists every key with different values.
func changes(was, now *config.Config, all bool) (list []string) {
	for _, d := range now.Differences(was) {
		if all || !harmless[d.Key] {
			list = append(list, d.String())
		}
	}
	return list
}

// warnOfChanges lists the values with which a run continues that differ from those so far. If its configuration was
// edited, those are all that differ: the file may have been damaged.
func (s *session) warnOfChanges(edited bool) {
	if s.last.Config == nil {
		return
	}
	if list := changes(s.last.Config, s.cfg, edited); len(list) > 0 {
		s.Warn(fmt.Sprintf("%s has changed since step %d; the run continues with\n  %s",
			s.dir.config(), s.last.Progress.Step, strings.Join(list, "\n  ")))
	}
}
