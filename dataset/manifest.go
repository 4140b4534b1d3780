package dataset

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"anneal/corpus"
	"anneal/internal/fileio"
	"anneal/internal/jsonlimit"
	"anneal/internal/shellword"
)

const (
	manifestName        = "dataset.json"
	tokenizerName       = "tokenizer.json"
	tokenizerConfigName = "tokenizer_config.json"
	manifestFormat      = "anneal-dataset"
	manifestVersion     = 1
	manifestLimit       = 16 << 20 // bytes; a shard takes 200
)

// manifestMost is for 100,000 shards, of 13 trillion tokens.
var manifestMost = jsonlimit.Limits{Objects: 100_000, Values: 1_000_000}

// Manifest is the content of dataset.json.
type Manifest struct {
	Format      string        `json:"format"`
	Version     int           `json:"version"`
	Tokenizer   TokenizerInfo `json:"tokenizer"`
	ValFraction float64       `json:"val_fraction"`
	Train       SplitInfo     `json:"train"`
	Val         SplitInfo     `json:"val"`
	Lost        *corpus.Loss  `json:"lost,omitempty"` // parts of the original text that could not be used
}

// TokenizerInfo identifies the tokenizer in the manifest.
type TokenizerInfo struct {
	Path      string `json:"path"`
	SHA256    string `json:"sha256"`
	VocabSize int    `json:"vocab_size"`
	EOT       uint32 `json:"eot"`
}

// Counts holds the contents of a shard or a split in numbers.
type Counts struct {
	Documents uint64 `json:"documents"`
	Tokens    uint64 `json:"tokens"`     // including one EOT per document
	TextBytes uint64 `json:"text_bytes"` // of the documents, before tokenisation

	PromptTokens uint64 `json:"prompt_tokens,omitempty"` // tokens that are not trained on
}

func (c *Counts) add(d Counts) {
	c.Documents += d.Documents
	c.Tokens += d.Tokens
	c.TextBytes += d.TextBytes
	c.PromptTokens += d.PromptTokens
}

// SplitInfo describes a split in the manifest.
type SplitInfo struct {
	Counts
	Shards []ShardInfo `json:"shards"`
}

// ShardInfo describes a shard in the manifest.
type ShardInfo struct {
	Path string `json:"path"` // from the directory of the dataset, with slashes
	Counts
	Header uint32 `json:"header_crc32c"`
}

// ErrNone means that a directory holds no dataset.
var ErrNone = errors.New("no data set")

// readManifest reads dataset.json and checks everything that does not need the shards.
func readManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, manifestName)
	b, err := fileio.ReadSmall(path, manifestLimit)
	if errors.Is(err, fs.ErrNotExist) && (exists(filepath.Join(dir, replaced)) || exists(filepath.Join(dir, moving))) {
		return Manifest{}, fmt.Errorf("%w in %s: it is being replaced\n  if that was interrupted, `anneal data build "+
			"--tokenizer tok.json --out %s FILES…` brings the old one back", ErrNone, dir, shellword.Command(dir))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fmt.Errorf("%w in %s: it has no %s\n  make one with `anneal data build --tokenizer "+
			"tok.json --out %s FILES…`; an interrupted build leaves no manifest", ErrNone, dir, manifestName,
			shellword.Command(dir))
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest %s: %s", path, fileio.Cause(err))
	}
	m, err := parseManifest(b)
	if err != nil {
		return m, fmt.Errorf("manifest %s: %w\n"+
			"  restore the file from a copy, or rebuild the data with `anneal data build`", path, err)
	}
	return m, nil
}

func parseManifest(b []byte) (Manifest, error) {
	var m Manifest
	if err := manifestMost.Check(b); err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, err
	}
	var has struct{ Train, Val json.RawMessage }
	if err := json.Unmarshal(b, &has); err != nil {
		return m, err
	}
	if m.Format != manifestFormat {
		return m, fmt.Errorf("format is %q, want %q", m.Format, manifestFormat)
	}
	if m.Version != manifestVersion {
		return m, fmt.Errorf("version %d; this version of anneal reads version %d", m.Version, manifestVersion)
	}
	if has.Train == nil || has.Val == nil { // each could pass for an empty one
		return m, errors.New("it has no train or no val")
	}
	if hash, err := hex.DecodeString(m.Tokenizer.SHA256); err != nil || len(hash) != 32 {
		return m, fmt.Errorf("tokenizer.sha256 is %q, want 64 hexadecimal digits", m.Tokenizer.SHA256)
	}
	if err := (Tokenizer{Vocab: m.Tokenizer.VocabSize, EOT: m.Tokenizer.EOT}).check(); err != nil {
		return m, err
	}
	if err := m.Train.check("train"); err != nil {
		return m, err
	}
	return m, m.Val.check("val")
}

func (s *SplitInfo) check(name string) error {
	var sum Counts
	for i, shard := range s.Shards {
		if !filepath.IsLocal(filepath.FromSlash(shard.Path)) {
			return fmt.Errorf("%s.shards[%d].path %q points outside the directory", name, i, shard.Path)
		}
		if shard.Tokens > math.MaxInt64-sum.Tokens {
			return fmt.Errorf("%s: the shards claim more than 2^63 tokens", name)
		}
		sum.add(shard.Counts)
	}
	if sum != s.Counts {
		return fmt.Errorf("%s claims %d documents, %d tokens, %d bytes, but its shards add up to %d, %d, %d", name,
			s.Documents, s.Tokens, s.TextBytes, sum.Documents, sum.Tokens, sum.TextBytes)
	}
	return nil
}

// write makes the dataset valid: the manifest gets its name after everything else is durable.
func (m *Manifest) write(dir string) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, manifestName), bytes.NewReader(append(b, '\n')))
}

// writeFile gives a file its name after it is complete and durable.
func writeFile(path string, content io.WriterTo) error {
	f, err := os.Create(path + temporary)
	if err != nil {
		return err
	}
	_, err = content.WriteTo(f)
	if err == nil {
		err = fileio.Put(f, path)
	}
	if err != nil {
		f.Close()
		os.Remove(path + temporary)
	}
	return err
}
