package lab

import (
	"context"
	"fmt"
	"strings"

	"anneal/config"
	"anneal/run"
)

// Finish trains the run of o, or the rest of it if o.Dir already has a part. A finished run is not trained again. A
// run with another configuration is an error.
func Finish(ctx context.Context, o run.Options) (*run.Result, error) {
	if !run.Exists(o.Dir) {
		return run.Run(ctx, o)
	}
	if err := sameRun(o.Dir, o.Config); err != nil {
		return nil, err
	}
	return run.Resume(ctx, o)
}

// sameRun returns an error if the run in dir is not a run of cfg.
func sameRun(dir string, cfg *config.Config) error {
	was, err := run.Config(dir)
	if err != nil {
		return err
	}
	now := *cfg
	if now.Model.Vocab == 0 {
		now.Model.Vocab = was.Model.Vocab // set from the data set
	}
	if was.Guard.Rewound > 0 {
		now.Data.Skip = was.Data.Skip // the run rewound automatically
	}
	if now.Init.Weights == "" {
		now.Init.Weights = was.Init.Weights // set from the weights that were read
	}
	if list := run.Changes(was, &now); len(list) > 0 {
		return fmt.Errorf("%s %w, with another configuration\n  %s\n  choose another --out",
			dir, run.ErrExists, strings.Join(list, "\n  "))
	}
	return nil
}
