package fasttext

import (
	"cmp"

	"anneal/internal/machine"
)

// Fits returns a *machine.RoomError if the vectors of n-grams alone need more memory than o.Available. Train counts the
// words as well, once it has read them.
func (o TrainOptions) Fits() error {
	if _, err := o.args(); err != nil {
		return err
	}
	return o.room(0, 0)
}

// room returns a *machine.RoomError if a model of so many words and labels needs more memory than o.Available.
func (o TrainOptions) room(words, labels int) error {
	vector := 4 * int64(o.Dim)
	return machine.Room(cmp.Or(o.Available, addressable),
		machine.Part{What: "vectors of words", Bytes: vector * int64(words), Flag: "--dim"},
		machine.Part{What: "vectors of n-grams", Bytes: vector * int64(o.Bucket), Flag: "--bucket"},
		machine.Part{What: "vectors of labels", Bytes: vector * int64(labels), Flag: "--dim"},
		machine.Part{What: "training", Bytes: trainMemory})
}

const (
	trainMemory = 128 << 20 // besides the vectors, the lines and the dictionary
	addressable = 1 << 46   // bytes; no process can have more
)
