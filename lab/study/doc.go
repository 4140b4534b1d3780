// Package study holds the studies of the literature on how language models learn, one file each. A study consists of
// texts, configurations and a loop over lab.Finish, which does the training. Each study has controls, figures, and a
// paragraph of findings that is computed from the figures.
//
// Start with Dir (dir.go), the directory of a study. The package may import lab and packages below it.
package study
