// Package study holds the studies of the literature on how language models learn, one file each. A study is texts,
// configurations and a loop over lab.Finish: nothing in here trains by itself. Each has controls, figures, and a
// paragraph that says what was seen, computed from the figures.
//
// Start with Dir (dir.go), the directory of a study. The package may import lab and what stands below it.
package study
