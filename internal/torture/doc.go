// Package torture repeats tests that inject faults, for a given time. It defines these flags:
//
//	go test ./... -run Torture -torture=5m
//	go test ./... -run Torture -torture=1h -timeout=0
//	go test ./cmd/anneal -run TestTortureKilledRewinds -torture.seed=8273
//
// The packages come first, because go test takes no package after a flag that it does not know. go test passes the
// flags to every package, so every package has a test file that imports this one; internal/arch checks it. -torture is
// a time for each package with tests named TestTorture…, which share it. Without -torture these tests make a few
// tries. Each try has its own seed; a failing test prints the seed of the try, and -torture.seed starts with it. A
// time above 10 minutes also needs go test's flag -timeout.
//
// -torture.report FILE appends the outcomes to a file, from which go generate makes docs/reliability.md:
//
//	go test ./... -run Torture -torture=9m -timeout=0 -torture.report=docs/reliability.jsonl
//	go generate ./internal/torture
//
// It imports nothing of this module. Start reading at Run.
package torture

//go:generate go run ./page
