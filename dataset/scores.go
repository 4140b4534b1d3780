package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"anneal/internal/fileio"
	"anneal/internal/shellword"
)

// Scores hold one number for each document of the training split, in order: its difficulty or its quality. They are
// stored with the shards, in DIR/scores/NAME.f32, little endian:
//
//	offset  size  field
//	     0     8  magic: 93 'A' 'N' 'N' 'S' 'C' 'R' 0A
//	     8     4  version, 1
//	    12     4  CRC-32C of the numbers
//	    16     8  number of documents (d)
//	    24    32  fingerprint of the data set
//	    56   196  how they were computed, UTF-8, then zeros
//	   252     4  CRC-32C of bytes 0–251
//	   256        d × float32; NaN for a document without a score, never an infinity
type Scores struct {
	Name   string    // of the file: lower-case letters, digits, _ and -
	About  string    // how they were computed, at most 196 bytes
	Values []float32 // [documents]
}

const (
	scoresDir     = "scores"
	scoresSuffix  = ".f32"
	scoresMagic   = "\x93ANNSCR\n"
	scoresVersion = 1
	scoresHeader  = 256
	aboutAt       = 56
	aboutLimit    = scoresHeader - 4 - aboutAt
)

// ScoresName matches valid names of scores.
var ScoresName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ScoresPath returns the path of the named scores.
func (d *Dataset) ScoresPath(name string) string {
	return filepath.Join(d.Dir, scoresDir, name+scoresSuffix)
}

// WriteScores stores scores with the data set and replaces those of the same name. The file gets its name after it is
// complete and durable.
func (d *Dataset) WriteScores(s Scores) error {
	switch docs := d.Manifest.Train.Documents; {
	case !ScoresName.MatchString(s.Name):
		return fmt.Errorf("%q is not a valid name for scores: use at most 32 lower-case letters, digits, _ and -",
			s.Name)
	case uint64(len(s.Values)) != docs:
		return fmt.Errorf("%d scores for the %d documents of the training split of %s\n"+
			"  give one score per document, in document order", len(s.Values), docs, d.Dir)
	}
	for i, v := range s.Values {
		if math.IsInf(float64(v), 0) {
			return fmt.Errorf("the score of document %d is %v\n  use NaN for a document without a score", i, v)
		}
	}
	if err := os.MkdirAll(filepath.Join(d.Dir, scoresDir), 0o777); err != nil {
		return err
	}
	return writeFile(d.ScoresPath(s.Name), bytes.NewReader(d.encodeScores(s)))
}

func (d *Dataset) encodeScores(s Scores) []byte {
	b := make([]byte, scoresHeader, scoresHeader+4*len(s.Values))
	for _, v := range s.Values {
		if v != v {
			v = float32(math.NaN()) // one representation of NaN, so that equal scores are equal bytes
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	copy(b, scoresMagic)
	binary.LittleEndian.PutUint32(b[8:], scoresVersion)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[scoresHeader:], castagnoli))
	binary.LittleEndian.PutUint64(b[16:], uint64(len(s.Values)))
	hex.Decode(b[24:56], []byte(d.fingerprint))
	about := s.About
	for len(about) > aboutLimit || !utf8.ValidString(about) {
		about = about[:len(about)-1]
	}
	copy(b[aboutAt:scoresHeader-4], about)
	binary.LittleEndian.PutUint32(b[scoresHeader-4:], crc32.Checksum(b[:scoresHeader-4], castagnoli))
	return b
}

// ReadScores reads the named scores. It returns an error if there are none, or if they belong to other data.
func (d *Dataset) ReadScores(name string) (Scores, error) {
	again := fmt.Sprintf("`anneal data score %s --by %s` if that is one of its metrics, or import them with "+
		"`--by file:PATH --name %[2]s`", shellword.Command(d.Dir), name)
	if !ScoresName.MatchString(name) {
		return Scores{}, fmt.Errorf("%q is not a valid name for scores: use at most 32 lower-case letters, "+
			"digits, _ and -", name)
	}
	path := d.ScoresPath(name)
	f, err := fileio.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		there := ""
		if names := d.scoreNames(); len(names) > 0 {
			there = "; it has " + strings.Join(names, ", ")
		}
		return Scores{}, fmt.Errorf("%s has no scores %q%s\n  make them with %s", d.Dir, name, there, again)
	}
	if err != nil {
		return Scores{}, fmt.Errorf("scores %s: %s", path, fileio.Cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Scores{}, fmt.Errorf("scores %s: %s", path, fileio.Cause(err))
	}
	s, err := d.decodeScores(f, info.Size())
	if err != nil {
		return Scores{}, fmt.Errorf("scores %s: %w\n  recreate them with %s", path, err, again)
	}
	s.Name = name
	return s, nil
}

// decodeScores reads a file of size bytes. Its allocations depend only on the number of documents of the data set.
func (d *Dataset) decodeScores(r io.Reader, size int64) (s Scores, err error) {
	docs := d.Manifest.Train.Documents
	head := make([]byte, scoresHeader)
	if _, err := io.ReadFull(r, head); err != nil {
		return s, fmt.Errorf("a file of %d bytes is too short for the header", size)
	}
	if string(head[:8]) != scoresMagic {
		return s, errors.New("not a file of scores")
	}
	if got, want := crc32.Checksum(head[:scoresHeader-4], castagnoli),
		binary.LittleEndian.Uint32(head[scoresHeader-4:]); got != want {
		return s, fmt.Errorf("header: checksum %08x, recorded %08x", got, want)
	}
	if v := binary.LittleEndian.Uint32(head[8:]); v != scoresVersion {
		return s, fmt.Errorf("version %d; this version of anneal reads version %d", v, scoresVersion)
	}
	if of := hex.EncodeToString(head[24:56]); of != d.fingerprint {
		return s, fmt.Errorf("they belong to the data %.12s…, but %s holds %.12s…", of, d.Dir, d.fingerprint)
	}
	if n := binary.LittleEndian.Uint64(head[16:]); n != docs || uint64(size) != scoresHeader+4*docs {
		return s, fmt.Errorf("%d scores in %d bytes for %d documents", n, size, docs)
	}
	about := bytes.TrimRight(head[aboutAt:scoresHeader-4], "\x00")
	if !utf8.Valid(about) || bytes.IndexByte(about, 0) >= 0 {
		return s, errors.New("the description is not UTF-8 text")
	}
	s.About = string(about)
	raw := make([]byte, 4*docs)
	if _, err := io.ReadFull(r, raw); err != nil {
		return s, errors.New("the file was truncated while it was open")
	}
	if got, want := crc32.Checksum(raw, castagnoli), binary.LittleEndian.Uint32(head[12:]); got != want {
		return s, fmt.Errorf("scores: checksum %08x, recorded %08x", got, want)
	}
	s.Values = make([]float32, docs)
	for i := range s.Values {
		s.Values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		if math.IsInf(float64(s.Values[i]), 0) {
			return s, fmt.Errorf("the score of document %d is %v", i, s.Values[i])
		}
	}
	return s, nil
}

// scoreNames returns the names of all scores of the data set, sorted.
func (d *Dataset) scoreNames() (names []string) {
	entries, _ := os.ReadDir(filepath.Join(d.Dir, scoresDir))
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), scoresSuffix); ok {
			names = append(names, name)
		}
	}
	return names
}

// Heads returns the first tokens, at most limit, of some documents of the training split, and the number of tokens
// that each has, without EOT. The documents are numbered from 0, in ascending
// order.
func (d *Dataset) Heads(documents []uint64, limit int) (heads [][]uint32, tokens []uint64, err error) {
	var buf scratch
	var failed error
	doc := uint64(0)
	err = d.train.documents(func(start, end, _ uint64) {
		for failed == nil && len(heads) < len(documents) && documents[len(heads)] == doc {
			head := make([]uint32, min(end-start-1, uint64(limit)))
			failed = d.train.read(head, start+1, &buf)
			heads, tokens = append(heads, head), append(tokens, end-start-1)
		}
		doc++
	})
	if err = errors.Join(err, failed); err == nil && len(heads) < len(documents) {
		err = fmt.Errorf("document %d cannot be read: the training split of %s has %d, "+
			"and they are read in ascending order", documents[len(heads)], d.Dir, doc)
	}
	return heads, tokens, err
}
