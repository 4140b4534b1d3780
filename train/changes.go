package train

import (
	"fmt"
	"reflect"
	"strings"

	"anneal/train/config"
)

// harmless are the keys that change where and how a run works, but not a bit of its result. Where the data lies is one, and what its
// sources are called: that it is the same data is checked by fingerprints.
var harmless = map[string]bool{
	"device":  true, // whose kernels the state names
	"threads": true, "data.path": true, "data.mix": true, "train.minutes": true, "train.log_every": true, "train.noise_scale_every": true,
	"train.eval_every": true, "train.eval_tokens": true, "checkpoint.every": true, "checkpoint.keep": true,
	"memory.recompute": true,
}

// Changes lists the keys whose values differ and decide what a run computes, as "key: was → now", in the order of the file.
func Changes(was, now *config.Config) []string {
	return differences("", reflect.ValueOf(*was), reflect.ValueOf(*now))
}

func differences(section string, was, now reflect.Value) (list []string) {
	for i := range was.NumField() {
		f := was.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		key := section + f.Tag.Get("yaml")
		switch a, b := was.Field(i), now.Field(i); {
		case f.Type.Kind() == reflect.Struct:
			list = append(list, differences(key+".", a, b)...)
		case !a.Equal(b) && !harmless[key]:
			list = append(list, fmt.Sprintf("%s: %v → %v", key, a, b))
		}
	}
	return list
}

// warnOfChanges tells which values a run goes on with that it was not trained with so far.
func (s *session) warnOfChanges() {
	if s.last.Config == nil {
		return
	}
	if list := Changes(s.last.Config, s.cfg); len(list) > 0 {
		s.Warn(fmt.Sprintf("%s has changed since step %d; the run continues with\n  %s", s.dir.config(), s.last.Progress.Step, strings.Join(list, "\n  ")))
	}
}
