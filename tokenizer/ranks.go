package tokenizer

// noRank means that two tokens do not merge; it is above every rank.
const noRank = 1<<32 - 1

// rankTable maps pairs of tokens to ranks: a full table for pairs of bytes, open addressing for the others.
type rankTable struct {
	bytes [1 << 16]uint32 // by first byte << 8 | second byte
	slots []rankSlot
	shift uint
}

type rankSlot struct {
	pair uint64
	rank uint32
}

const noPair = 1<<64 - 1 // ids stay below maxVocab, so no pair is this

func pairKey(left, right uint32) uint64 { return uint64(left)<<32 | uint64(right) }

// build fills the table. For a pair that occurs twice the later rank counts, as in Hugging Face tokenizers.
func (t *rankTable) build(merges []merge, byteID *[256]uint32) {
	size, shift := 16, uint(60)
	for size < 2*len(merges) {
		size, shift = 2*size, shift-1
	}
	t.slots, t.shift = make([]rankSlot, size), shift
	for i := range t.slots {
		t.slots[i] = rankSlot{noPair, noRank}
	}
	for rank, m := range merges {
		*t.slot(pairKey(m.left, m.right)) = rankSlot{pairKey(m.left, m.right), uint32(rank)}
	}
	for a := range 256 {
		for b := range 256 {
			t.bytes[a<<8|b] = t.find(byteID[a], byteID[b])
		}
	}
}

// slot returns the slot of a pair: its own, or the free one where it belongs.
func (t *rankTable) slot(pair uint64) *rankSlot {
	mask := uint64(len(t.slots) - 1)
	for i := mix(pair) >> t.shift; ; i++ {
		if s := &t.slots[i&mask]; s.pair == pair || s.pair == noPair {
			return s
		}
	}
}

// find returns the rank of the pair, or noRank.
func (t *rankTable) find(left, right uint32) uint32 {
	return t.slot(pairKey(left, right)).rank
}

// mix spreads a key over all 64 bits (the finalizer of SplitMix64, shortened).
func mix(x uint64) uint64 {
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return (x ^ x>>32) * 0x94d049bb133111eb
}
