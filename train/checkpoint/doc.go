// Package checkpoint saves and restores the state of a training run so that a kill, a full disk or a flipped bit at any
// instant never loses more than the steps since the last save.
//
// A directory of checkpoints looks like this; everything is safetensors, JSON or text:
//
//	step-00001200/
//	  model.safetensors    weights
//	  optim.safetensors    optimizer state, if there is any
//	  average.safetensors  an average of the weights, if there is one
//	  state.json           whatever small state the trainer wants back
//	  MANIFEST.json        written last: sizes, checksums, shapes; a directory without it is no checkpoint
//	latest                 the name of the newest one, for people; loading does not trust it
//	aside/                 checkpoints that were taken out of the run
//	.lock                  held by the process that writes here
//
// A save goes to step-….tmp-…: every file is written and synced, then the manifest, then the directory is renamed and its
// parent synced. Loading walks from the newest checkpoint to the oldest and takes the first whose every 4 MiB chunk has
// the CRC-32C that the manifest gives. Deleting removes the manifest first. Sequence numbers, not clocks, say which
// checkpoint is newer.
//
// Bytes are little-endian, as in memory on every machine this module runs on.
//
// It may import safetensors and nothing else of this module. Start reading at Store in store.go; write.go is the commit
// protocol, manifest.go the format, load.go and verify.go the way back, retain.go what gets deleted.
package checkpoint
