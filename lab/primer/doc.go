// Package primer holds the tables that people who train models look up: number formats; bytes of optimizers, of mixed
// precision and of sharded state; the cost of recomputation. Every number is computed, by the same code that plans and
// runs use or from the bits of a format. The package also makes quiz questions from the tables.
//
// Start with Tables (table.go). The package may import packages below lab.
package primer
