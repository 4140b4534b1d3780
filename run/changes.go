package run

import (
	"fmt"
	"slices"
	"strings"

	"anneal/config"
)

// harmless lists the keys that do not change a bit of a run's result. The paths of the data and the names of its
// sources are among them, because fingerprints identify the data.
var harmless = map[string]bool{
	"device":  true, // the state names its kernels
	"threads": true, "data.path": true, "data.mix": true, "distill.teacher": true, "train.minutes": true,
	"train.log_every": true, "train.norms_every": true, "train.noise_scale_every": true, "train.eval_every": true,
	"train.eval_packing": true, "train.eval_tokens": true, "train.eval_answers": true,
	"checkpoint.every": true, "checkpoint.keep": true, "checkpoint.max_failures": true, "guard.rewinds": true,
	"guard.replay_every": true,
	"eval.tasks":         true, "eval.tasks_every": true,
	"samples.every": true, "samples.prompts": true, "samples.tokens": true, "samples.temperature": true,
	"watchdog.enabled": true, "watchdog.exit": true, "guard.rewound": true,
	"memory.recompute": true, "memory.offload": true, "memory.offload_dir": true,
	"parallel.ranks": true, "parallel.zero": true, "parallel.timeout": true, "parallel.schedule": true,
	"log.sinks": true, "log.every": true, "log.prometheus_listen": true, "log.trackio_url": true,
	"log.trackio_project": true, "log.webhook": true,
}

// movable lists the keys that may change when a run is resumed: those that say how ranks share it.
var movable = []string{
	"parallel.ranks", "parallel.zero", "parallel.tensor", "parallel.sequence", "parallel.context", "parallel.attention",
	"parallel.pipeline", "parallel.schedule", "parallel.timeout",
}

// changesBits reports whether another value of a key changes bits of a run's result.
func changesBits(key string, was, now *config.Config) bool {
	a, b := &was.Parallel, &now.Parallel
	switch key {
	case "parallel.sequence":
		return max(a.Tensor, b.Tensor) > 1
	case "parallel.attention":
		return max(a.Context, b.Context) > 1
	case "parallel.pipeline": // the gradient of a tied table is one sum on one stage, and two on several
		return now.Model.TieEmbeddings && (a.Pipeline > 1) != (b.Pipeline > 1)
	case "memory.recompute": // recompute decides which inputs are rounded
		return was.Memory.RecomputeInputs == "bf16" || now.Memory.RecomputeInputs == "bf16"
	}
	return !harmless[key]
}

// Changes lists the keys with different values that affect the result of a run, as "key: was → now", in the order of
// the file.
func Changes(was, now *config.Config) []string {
	return changesOf(was, now, func(key string) bool { return changesBits(key, was, now) })
}

// allChanges is Changes for all keys with different values.
func allChanges(was, now *config.Config) []string {
	return changesOf(was, now, func(string) bool { return true })
}

// changesOf is Changes for the keys that count.
func changesOf(was, now *config.Config, counts func(key string) bool) (list []string) {
	for _, d := range now.Differences(was) {
		if counts(d.Key) {
			list = append(list, d.String())
		}
	}
	return list
}

// rewritten lists the keys that a rewind changes.
var rewritten = []string{"data.skip", "guard.rewound"}

// warnOfChanges warns of the values of a continued run that differ from those so far, except how ranks share it, which
// ResumeConfig reports, and what this process changed when it took the run back. If the configuration file was edited,
// it lists all differences, because the file may have been damaged.
func (s *session) warnOfChanges(edited bool) {
	was := s.last.Config
	if was == nil {
		return
	}
	list := changesOf(was, s.cfg, func(key string) bool {
		return !slices.Contains(movable, key) && !(s.rewound && slices.Contains(rewritten, key)) &&
			(edited || changesBits(key, was, s.cfg))
	})
	if len(list) > 0 {
		s.warnEarly(fmt.Sprintf("%s has changed since step %d; the run continues with\n  %s",
			s.dir.config(), s.last.Progress.Step, strings.Join(list, "\n  ")))
	}
}

// remarkMove notes, for a run that continues on another mesh of ranks, whether its bits change.
func remarkMove(was, now *config.Config) {
	moved := false
	var bits []string
	for _, d := range now.Differences(was) {
		if !slices.Contains(movable, d.Key) {
			continue
		}
		moved = moved || d.Key != "parallel.timeout"
		if changesBits(d.Key, was, now) {
			bits = append(bits, d.Key)
		}
	}
	switch {
	case !moved:
	case bits == nil:
		now.Remark(fmt.Sprintf("the run was on %v and continues on %v: no bit of its result changes",
			was.Parallel, now.Parallel))
	default:
		now.Remark(fmt.Sprintf("the run was on %v and continues on %v. Sums come in another order (%s): "+
			"the result is equally good, but not bit for bit the same",
			was.Parallel, now.Parallel, strings.Join(bits, ", ")))
	}
}
