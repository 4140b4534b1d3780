// Package primer holds the tables that everyone who trains models knows by heart or looks up: number formats, bytes of
// optimizers, of mixed precision and of sharded state, what recomputation costs. Every number is computed, by the same
// code that plans and runs use or from the bits of a format, and questions about them can be asked.
//
// Start with Tables (table.go). The package may import what stands below lab.
package primer
