// Package tfevents writes the event files of TensorBoard: records of protocol buffers, each framed with its length and
// checksums (TFRecord). It writes the four kinds of event that a training run needs: the version that begins a file,
// the start of a session, and summaries of scalars, texts and histograms. It reads no files and imports no other
// package of this module.
//
// Start with [Summary]. The messages are tensorboard/compat/proto/{event,summary,tensor}.proto; a field
// is written only if TensorBoard reads it.
package tfevents
