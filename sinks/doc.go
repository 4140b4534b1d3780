// Package sinks reports a run to other tools while it trains: event files for TensorBoard, an endpoint that Prometheus
// scrapes, the HTTP interface of trackio, and alerts to a webhook. Its input is the data of a step (train.Event); it
// imports no package above train.
//
// No sink delays a run. The output of a sink waits in a bounded queue (internal/relay), which a goroutine of its own
// empties. If the sink is too slow, the oldest pieces are dropped and counted in a warning. Closing waits a few
// seconds for the rest, however many sinks hang.
//
// Start with [Open]. Each sink is a file; values.go says which numbers they share, outbox.go has the queue.
package sinks
