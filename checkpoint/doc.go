// Package checkpoint saves and restores the state of a training run. A kill, a full disk or a flipped bit at any time
// never loses more than the steps since the last save.
//
// A directory of checkpoints looks like this; everything is safetensors, JSON or text:
//
//	step-00001200/
//	  model.safetensors    weights
//	  optim.safetensors    optimizer state, if there is any
//	  average.safetensors  an average of the weights, if there is one
//	  state.json           the trainer's small state
//	  MANIFEST.json        written last: sizes, checksums, tensors; a directory without it is no checkpoint
//	latest                 the name of the newest one, for people; loading does not rely on it
//	aside/                 checkpoints removed from the run
//	.lock                  held by the process that writes here
//
// A save goes to step-….tmp-…: every file is written and synced, then the manifest, then the directory is renamed and
// its parent synced. Loading tries checkpoints from the newest to the oldest and takes the first in which every 4 MiB
// chunk that it needs has the CRC-32C in the manifest. Deleting renames the directory first. Sequence numbers, not
// clocks, determine which checkpoint is newer.
//
// A tensor in the manifest is a dtype, a global shape and a list of pieces. A piece is a box of the tensor, or a run of
// the elements of a box in row-major order, and its place in a file. The pieces of a tensor cover it exactly once, so
// a reader can assemble any region from any set of pieces. A single process writes one piece per tensor. If there are
// several writers, number 3 writes model.r00003.safetensors and part-00003.json, its part of the manifest; the process
// with the Store joins the parts. The files of several writers name each tensor "name@box@run".
//
// Bytes are little-endian, as in memory on every machine that this module supports.
//
// Of this module it imports only safetensors, tensor for memory outside the Go heap, and internal packages. Start
// reading at Store in store.go. write.go is the commit protocol, together.go and writer.go that of several writers,
// room.go the memory of a snapshot; manifest.go, pieces.go and region.go are the format, load.go, resume.go, reader.go
// and verify.go read and verify, retain.go deletes, merge.go makes whole tensors of pieces.
package checkpoint
