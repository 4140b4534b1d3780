// Package hardware describes accelerators and clusters of them: peaks by precision, memory, bandwidth, and networks
// with levels.
//
//   - accelerator.go: an accelerator; table.go: those that are known by name, with their sources
//   - cluster.go: nodes of accelerators and the levels of their network; parse.go reads 128x8xh100-80gb
//   - file.go: a cluster from a YAML file, read by section.go; fitted.go: the constants of accelerators
//   - collective.go: how long messages between ranks take, by an α-β model of each level
//
// Of this module it imports only internal packages. Start reading at accelerator.go.
package hardware
