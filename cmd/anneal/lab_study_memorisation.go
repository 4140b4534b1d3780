package main

import (
	"context"
	"fmt"

	"anneal/lab/study"
)

type studyMemorisationCmd struct {
	Steps     count `default:"1000" placeholder:"N" help:"Steps of each model."`
	Documents count `default:"20000" placeholder:"N" help:"Documents of random words, among which the secrets are."`
	seedFlags
}

func (studyMemorisationCmd) Help() string {
	return example("anneal lab study memorisation --out runs/memorisation",
		"anneal lab study memorisation --seeds 3 --out runs/memorisation3") +
		"\n\nSecrets stand 1 to 64 times in a text of random words (Carlini et al. 2019, arXiv 1802.08232). " +
		"How many does a model write after their key, and how many if repeated documents are dropped first (Lee et " +
		"al. 2021, arXiv 2107.06499)? Exposure is how far a secret's probability stands out from that of 1,000 " +
		"secrets that are not in the text."
}

func (c studyMemorisationCmd) Run(s *session) error {
	if c.Steps < 1 || c.Documents < 1 {
		return &usageError{"no steps, or no documents", "try --steps 1000 --documents 20000"}
	}
	of := func(seed int) study.MemorisationOptions {
		return study.MemorisationOptions{Seed: seed, Steps: int(c.Steps), Documents: int(c.Documents)}
	}
	return studySeeds(s, c.seedFlags, "memorisation", of, func(ctx context.Context, d *study.Dir,
		o study.MemorisationOptions) (*study.Report, error) {
		r, found, err := study.Memorise(ctx, d, o)
		if err != nil {
			return nil, err
		}
		s.printf("%6s  %22s  %22s\n%6s  %10s %11s  %10s %11s\n", "",
			"text as it is", "deduplicated", "copies", "extracted",
			"exposure", "extracted", "exposure")
		for i, m := range found.Repeated.Secrets {
			once := found.Deduplicated.Secrets[i]
			s.printf("%6d  %10s %11s  %10s %11s\n", m.Copies, fmt.Sprintf("%.0f %%", 100*m.Extracted),
				fmt.Sprintf("%.1f bits", m.Exposure), fmt.Sprintf("%.0f %%", 100*once.Extracted),
				fmt.Sprintf("%.1f bits", once.Exposure))
		}
		return r, nil
	})
}
