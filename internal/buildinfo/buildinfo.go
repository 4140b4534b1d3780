// Package buildinfo says which release of anneal this is, and from which commit it was built.
package buildinfo

import "runtime/debug"

// Version is the release.
const Version = "0.1.0"

// Commit returns the first 12 digits of the commit, or "" if the build does not record it.
func Commit() string {
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

// String returns version and commit, such as "0.1.0 (3f2a91c07d5e)".
func String() string {
	if commit := Commit(); commit != "" {
		return Version + " (" + commit + ")"
	}
	return Version
}
