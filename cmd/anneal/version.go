package main

import (
	"runtime"
	"runtime/debug"
)

// version is the release; the commit comes from the build.
const version = "0.1.0"

type versionCmd struct{}

func (versionCmd) Help() string { return example("anneal version --json") }

func (versionCmd) Run(s *session) error {
	commit := buildCommit()
	s.printf("anneal %s", version)
	if commit != "" {
		s.printf(" (%s)", commit)
	}
	s.printf(" %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return s.emit(map[string]any{
		"version": version, "commit": commit, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
	})
}

func buildCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return ""
}
