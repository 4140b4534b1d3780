// Package torture repeats tests that break things, until a time is over. It knows the flags that say so:
//
//	go test ./... -run Torture -torture=5m
//	go test ./... -run Torture -torture=1h -timeout=0
//	go test ./cmd/anneal -run TestTortureKilledRewinds -torture.seed=8273
//
// The packages come first: go test takes no package after a flag that it does not know itself. It gives the flags to
// every package, so that a test file of each imports this one, if only for its flags; internal/arch checks it.
// -torture is the time of each package that has tests named TestTorture…, which share it. Without it they make a few
// tries. Each try has its own seed; a test that fails prints that of the try, and -torture.seed makes it the first
// try. A time above 10 minutes also needs go test's own -timeout.
//
// -torture.report FILE appends what happened to a file, from which go generate makes docs/reliability.md:
//
//	go test ./... -run Torture -torture=9m -timeout=0 -torture.report=docs/reliability.jsonl
//	go generate ./internal/torture
//
// It imports nothing of this module. Start reading at Run.
package torture

//go:generate go run ./page
