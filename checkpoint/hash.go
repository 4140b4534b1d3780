package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
)

// HashTensors returns SHA-256 hashes, in hex, of the weights and of all other state (empty if there is none). A hash
// covers name, dtype, shape and bytes of every tensor, in order of name. It depends neither on files nor on the given
// order. Hash returns the same for a checkpoint on disk. Every tensor must be whole. Reading can only fail for remote
// tensors.
func HashTensors(tensors []Tensor) (weights, optimizer string, err error) {
	var w, o digests
	var buffer []byte
	for _, t := range tensors {
		if !t.Region.isZero() {
			return "", "", fmt.Errorf("tensor %q: only a part of it is here", t.Name)
		}
		data, err := t.bytes(&buffer)
		if err != nil {
			return "", "", fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		h := newTensorHash(t.Name, t.DType, t.Shape)
		h.Write(data)
		if t.kind() != modelKind {
			o = append(o, digest{t.Name, h.Sum(nil)})
		} else {
			w = append(w, digest{t.Name, h.Sum(nil)})
		}
	}
	return w.sum(), o.sum(), nil
}

// Hash returns the hashes of HashTensors for the newest checkpoint under root that verifies, and its Info as from
// [LoadLatest].
func Hash(root string) (weights, optimizer string, info Info, err error) {
	skipped, err := newest(root, func(e *Entry) (err error) {
		info = e.Info
		weights, optimizer, err = e.hash(root)
		return err
	})
	info.Skipped = skipped
	return weights, optimizer, info, err
}

// hash reads all tensors in order of their elements, whatever their layout in files, and verifies the bytes that it
// reads.
func (e *Entry) hash(root string) (weights, optimizer string, err error) {
	r := e.reader(root)
	hashes := map[string]hash.Hash{}
	var batch []want
	buffer := make([]byte, 0, min(chunkBytes, e.Bytes))
	flush := func() error {
		err := r.fetch(batch)
		for _, w := range batch {
			hashes[w.tensor].Write(w.dst)
		}
		batch, buffer = batch[:0], buffer[:0]
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(e.manifest.Tensors)) {
		t := e.manifest.Tensors[name]
		hashes[name] = newTensorHash(name, t.DType, t.Shape)
		whole, err := Region{}.span(t.DType, t.Shape)
		if err != nil {
			return "", "", err
		}
		for at := int64(0); at < whole.size(); {
			n := min(whole.size()-at, int64(cap(buffer)-len(buffer)))
			dst := buffer[len(buffer):][:n]
			batch, buffer = append(batch, want{name, whole.cut(at, at+n), dst, nil}), buffer[:len(buffer)+int(n)]
			if at += n; len(buffer) == cap(buffer) {
				if err := flush(); err != nil {
					return "", "", err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return "", "", err
	}
	var w, o digests
	for name, h := range hashes {
		if t := e.manifest.Tensors[name]; t.kind() == modelKind {
			w = append(w, digest{name, h.Sum(nil)})
		} else {
			o = append(o, digest{name, h.Sum(nil)})
		}
	}
	return w.sum(), o.sum(), nil
}

// digest is the SHA-256 of one tensor: of what newTensorHash writes, then its bytes.
type digest struct {
	name string
	sum  []byte
}

type digests []digest

// sum returns the SHA-256 of the digests in order of name.
func (d digests) sum() string {
	if len(d) == 0 {
		return ""
	}
	slices.SortFunc(d, func(a, b digest) int { return cmp.Compare(a.name, b.name) })
	h := sha256.New()
	for _, t := range d {
		h.Write(t.sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// newTensorHash returns a hash that has read name and dtype, each with its length, the rank and the dimensions.
func newTensorHash(name, dtype string, shape []int) hash.Hash {
	var b []byte
	for _, s := range []string{name, dtype} {
		b = append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(shape)))
	for _, n := range shape {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	h := sha256.New()
	h.Write(b)
	return h
}
