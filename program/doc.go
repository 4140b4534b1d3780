// Package program describes what each stage of a pipeline does in one training step, as a list of instructions. It
// also checks whether such lists are sound, and computes how long they take and how much memory they need.
//
// A model is cut into stages·chunks parts of consecutive layers. Stage s has the parts s, stages+s, 2·stages+s …: part
// chunk·stages+stage is the stage's chunk. With one chunk, part and stage are the same. A batch is cut into
// micro-batches, and each goes through all parts forward and then back.
//
//   - instr.go: the instructions, and which two of them are the ends of one message
//   - gpipe.go, onefoneb.go, interleaved.go, zerobubble.go: one schedule each; schedule.go: their names
//   - connect.go: adds the messages between stages to a schedule
//   - late.go: receives as late as they can be, for software that asks for messages beforehand
//   - check.go: refuses lists that are not sound
//   - simulate.go: how a step passes: times, idle time, micro-batches in flight
//   - balance.go: cuts layers of uneven cost into parts
//
// It imports no other package of anneal. program/draw draws schedules. Start reading at instr.go.
package program
