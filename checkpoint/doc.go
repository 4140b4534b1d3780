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
//	  MANIFEST.json        written last: sizes, checksums, shapes; a directory without it is not a checkpoint
//	latest                 the name of the newest one, for people; loading does not rely on it
//	aside/                 checkpoints removed from the run
//	.lock                  held by the process that writes here
//
// A save goes to step-….tmp-…: every file is written and synced, then the manifest, then the directory is renamed and
// its parent synced. Loading goes from the newest checkpoint to the oldest and takes the first in which every 4 MiB
// chunk has the CRC-32C of the manifest. Deleting removes the manifest first. Sequence numbers, not clocks, determine
// which checkpoint is newer.
//
// Bytes are little-endian, as in memory on every machine that this module supports.
//
// It may import safetensors and nothing else of this module. Start reading at Store in store.go. write.go is the
// commit protocol, manifest.go the format, load.go and verify.go read and verify, retain.go deletes.
package checkpoint
