// Package plan says what a run will need before it starts: parameters, FLOPs and memory, from the model's shape alone.
//
// It knows nothing of training: Shape is its own, and what it predicts is compared with what happened. Start with Shape
// (shape.go), then Memory (memory.go). The package imports nothing from this module.
package plan
