package main

import (
	"runtime"

	"anneal/internal/buildinfo"
)

type versionCmd struct{}

func (versionCmd) Help() string { return example("anneal version --json") }

func (versionCmd) Run(s *session) error {
	s.printf("anneal %s %s %s/%s\n", buildinfo.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return s.emit(map[string]any{
		"version": buildinfo.Version, "commit": buildinfo.Commit(), "go": runtime.Version(), "os": runtime.GOOS,
		"arch": runtime.GOARCH,
	})
}
