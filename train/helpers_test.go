package train

import "anneal/train/checkpoint"

// hashes returns the hashes of a trainer's weights and optimizer state.
func hashes(t *Trainer) [2]string {
	w, o := checkpoint.HashTensors(t.checkpointTensors())
	return [2]string{w, o}
}
