package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"

	"anneal/internal/jsonlimit"
)

const (
	manifestName  = "MANIFEST.json"
	stateName     = "state.json"
	modelKind     = "model" // first part of the names of the files with weights
	optimKind     = "optim"
	averageKind   = "average"
	formatName    = "anneal checkpoint"
	formatVersion = 2 // 1 had neither Origin nor pieces
	chunkBytes    = 4 << 20
	maxManifest   = 512 << 20 // bytes; Llama 2 70B with AdamW needs 110 MB from 2,048 ranks, and twice that of boxes
	maxFiles      = 1 << 15
	maxState      = 4 << 20 // the largest window of the guard needs 3 MB
	maxSequence   = 1 << 53 // far more saves than a run can make
)

// Limits of a manifest and a state: of pieces and chunks, and of the numbers that the guard keeps. A piece is an
// object, and its box another; 70B from 2,048 ranks have 500,000 pieces and 4 to 8 million values.
var (
	manifestMost = jsonlimit.Limits{Objects: 2_500_000, Values: 25_000_000}
	stateMost    = jsonlimit.Limits{Objects: 10_000, Values: 500_000}
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrFuture means that a checkpoint has a newer format. Such a checkpoint is never deleted.
var ErrFuture = errors.New("written by a newer version of anneal")

// checksum is a CRC-32C, written as eight hex digits.
type checksum uint32

func (c checksum) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%08x", uint32(c)), nil }

func (c *checksum) UnmarshalText(b []byte) error {
	var raw [4]byte
	if len(b) != 8 {
		return fmt.Errorf("checksum %.20q is not eight hex digits", b)
	}
	if _, err := hex.Decode(raw[:], b); err != nil {
		return err
	}
	*c = checksum(uint32(raw[0])<<24 | uint32(raw[1])<<16 | uint32(raw[2])<<8 | uint32(raw[3]))
	return nil
}

// manifest is MANIFEST.json.
type manifest struct {
	Format        string `json:"format"`
	FormatVersion int    `json:"format_version"`
	Sequence      int64  `json:"sequence"` // incremented by every save, across resumes and rewinds
	Step          int64  `json:"step"`
	Tokens        int64  `json:"tokens"`
	Parent        string `json:"parent,omitempty"` // the last checkpoint that the run saved or loaded
	Origin
	ChunkBytes int64                  `json:"chunk_bytes"`
	Files      []fileEntry            `json:"files"`
	Tensors    map[string]tensorEntry `json:"tensors"`
	// checksum of this file with its eight digits replaced by zeros; must be the last field
	CRC32C checksum `json:"manifest_crc32c"`

	pieces map[string][]namedPiece // pieces of each file, by offset; made by check
}

type fileEntry struct {
	Name   string     `json:"name"`
	Size   int64      `json:"size"`
	SHA256 string     `json:"sha256"`
	CRC32C []checksum `json:"crc32c"` // one per chunk
}

// newManifest returns a manifest of this format without files.
func newManifest() *manifest {
	return &manifest{
		Format: formatName, FormatVersion: formatVersion, ChunkBytes: chunkBytes, Tensors: map[string]tensorEntry{},
	}
}

// write writes the manifest, or a writer's part of it, to a file.
func (m *manifest) write(fs filesystem, dir, name string) error {
	text, err := m.encode()
	if err == nil {
		_, err = writeBytes(fs, dir, name, text)
	}
	return err
}

const crcField = `"manifest_crc32c": "`

// encode renders the manifest with its own checksum. It returns an error for a manifest that parseManifest or
// readManifest would refuse.
func (m *manifest) encode() ([]byte, error) {
	m.CRC32C = 0
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	if len(text) > maxManifest {
		return nil, fmt.Errorf("the manifest has %d bytes, more than %d: save from fewer ranks", len(text), maxManifest)
	}
	if err := manifestMost.Check(text); err != nil {
		return nil, fmt.Errorf("the manifest has %w: save from fewer ranks", err)
	}
	digits, err := checksum(crc32.Checksum(text, castagnoli)).MarshalText()
	if err != nil {
		return nil, err
	}
	copy(text[bytes.LastIndex(text, []byte(crcField))+len(crcField):], digits)
	return text, nil
}

// decodeManifest parses and checks a manifest. Its result is consistent: every piece lies within a listed file, pieces
// in a file do not overlap, the pieces of a tensor cover it exactly once, and every file has as many checksums as
// chunks.
func decodeManifest(text []byte) (*manifest, error) {
	m, err := parseManifest(text)
	if err != nil {
		return nil, err
	}
	return m, m.check()
}

// parseManifest parses a manifest, or one writer's part of a manifest.
func parseManifest(text []byte) (*manifest, error) {
	if err := manifestMost.Check(text); err != nil {
		return nil, err
	}
	var head struct {
		Format        string `json:"format"`
		FormatVersion int    `json:"format_version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("torn or invalid JSON: %w", err)
	}
	switch {
	case head.Format != formatName:
		return nil, fmt.Errorf("format is %.40q, not %q", head.Format, formatName)
	case head.FormatVersion > formatVersion:
		return nil, fmt.Errorf("%w: format version %d; this version reads up to %d",
			ErrFuture, head.FormatVersion, formatVersion)
	case head.FormatVersion < 1:
		return nil, fmt.Errorf("unknown format version %d", head.FormatVersion)
	}
	if err := checkOwnSum(text); err != nil {
		return nil, err
	}
	m := &manifest{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, err
	}
	for name, t := range m.Tensors {
		if err := t.whole(); err != nil {
			return nil, fmt.Errorf("tensor %.80q: %w", name, err)
		}
		m.Tensors[name] = t
	}
	return m, nil
}

// checkOwnSum compares the checksum recorded in text with the checksum of text.
func checkOwnSum(text []byte) error {
	at := bytes.LastIndex(text, []byte(crcField))
	if at < 0 || len(text) < at+len(crcField)+8 {
		return errors.New("it has no checksum")
	}
	at += len(crcField)
	var want checksum
	if err := want.UnmarshalText(text[at : at+8]); err != nil {
		return err
	}
	sum := crc32.Update(0, castagnoli, text[:at])
	sum = crc32.Update(sum, castagnoli, []byte("00000000"))
	sum = crc32.Update(sum, castagnoli, text[at+8:])
	if checksum(sum) != want {
		return fmt.Errorf("its checksum is %08x, the recorded one %08x", sum, uint32(want))
	}
	return nil
}

var fileName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$`)

func (m *manifest) check() error {
	if m.ChunkBytes != chunkBytes || m.Step < 0 || m.Tokens < 0 || m.Sequence < 0 || m.Sequence > maxSequence {
		return errors.New("chunk_bytes, step, tokens or sequence is out of range")
	}
	if err := m.Origin.check(); err != nil {
		return err
	}
	if len(m.Files) > maxFiles {
		return fmt.Errorf("%d files, more than %d", len(m.Files), maxFiles)
	}
	files := map[string]int64{}
	for _, f := range m.Files {
		_, dup := files[f.Name]
		switch {
		case dup || !fileName.MatchString(f.Name) || f.Name == manifestName:
			return fmt.Errorf("file name %.40q is invalid or repeated", f.Name)
		case f.Size < 0 || int64(len(f.CRC32C)) != chunksOf(f.Size):
			return fmt.Errorf("file %s: %d checksums for %d bytes", f.Name, len(f.CRC32C), f.Size)
		}
		files[f.Name] = f.Size
	}
	if n, ok := files[stateName]; !ok || n > maxState {
		return fmt.Errorf("%s is not listed or too large", stateName)
	}
	for name, t := range m.Tensors {
		if err := t.check(files); err != nil {
			return fmt.Errorf("tensor %.80q: %w", name, err)
		}
	}
	return m.place()
}

// namedPiece is a piece with its tensor.
type namedPiece struct {
	tensor string
	*piece
}

// place lists the pieces of every file, and returns an error if some overlap.
func (m *manifest) place() error {
	m.pieces = map[string][]namedPiece{}
	for name, t := range m.Tensors {
		for i := range t.Pieces {
			p := &t.Pieces[i]
			m.pieces[p.File] = append(m.pieces[p.File], namedPiece{name, p})
		}
	}
	for file, list := range m.pieces {
		slices.SortFunc(list, func(a, b namedPiece) int {
			return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.tensor, b.tensor))
		})
		at, last := int64(0), ""
		for _, p := range list {
			if p.Offset < at {
				return fmt.Errorf("tensors %.80q and %.80q overlap in %s", last, p.tensor, file)
			}
			at, last = p.Offset+p.Size, p.tensor
		}
	}
	return nil
}

// has reports whether there are tensors of a kind.
func (m *manifest) has(kind string) bool {
	for file := range m.pieces {
		if kindOf(file) == kind {
			return true
		}
	}
	return false
}

// chunksOf returns the number of chunks of a file.
func chunksOf(size int64) int64 { return (size-1)/chunkBytes + min(size, 1) }

// bytes returns the size of all files together, without the manifest.
func (m *manifest) bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}
