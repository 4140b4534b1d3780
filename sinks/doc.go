// Package sinks tells other tools of a run while it trains: event files for TensorBoard, an endpoint that Prometheus
// scrapes, the HTTP interface of trackio, and alerts to a webhook. It takes what a run knows of a step (train.Event)
// and imports nothing above that.
//
// No sink holds a run up. What a sink writes waits in a bounded queue (internal/relay) before a goroutine of its own;
// if the sink is too slow the oldest pieces are dropped, counted and named in a warning. Closing waits a few seconds
// for what is left, however many sinks hang.
//
// Start with [Open]. Each sink is a file; values.go says which numbers they share, outbox.go has the queue.
package sinks
