package run

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/buildinfo"
	"anneal/internal/fileio"
	"anneal/internal/yaml"
	"anneal/tokenizer"
)

// runFiles are the files that define a run. Every checkpoint records the run's id and the hashes of these files, so
// that a damaged file, or one of another run, is noticed.
type runFiles struct {
	config, tokenizer, tokenizerConfig []byte
	branch                             []byte // of a new branch; not hashed
}

// newRunFiles returns the files of a new run in d, with a new id.
func newRunFiles(d runDir, cfg *config.Config, tokenizerJSON []byte, tok *tokenizer.Tokenizer) runFiles {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return runFiles{
		config:    slices.Concat(d.firstLine(hex.EncodeToString(id[:])), cfg.YAML()),
		tokenizer: tokenizerJSON, tokenizerConfig: tok.ConfigJSON(),
	}
}

// readFiles reads the files of an existing run. A run of an early version has no tokenizer_config.json.
func (d runDir) readFiles() (f runFiles, err error) {
	if f.config, err = fileio.ReadSmall(d.config(), yaml.MaxBytes); err != nil {
		return f, fmt.Errorf("cannot read the run: %w", err)
	}
	if f.tokenizer, err = fileio.ReadSmall(d.tokenizer(), tokenizer.MaxFile); err != nil {
		return f, &dataset.Error{Err: err}
	}
	f.tokenizerConfig, err = fileio.ReadSmall(d.tokenizerConfig(), tokenizer.MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, &dataset.Error{Err: err}
	}
	return f, nil
}

// origin identifies the run in its checkpoints.
func (f *runFiles) origin() checkpoint.Origin {
	return checkpoint.Origin{
		Run: f.run(), Config: sha256Of(f.config), Tokenizer: sha256Of(f.tokenizer),
		TokenizerConfig: sha256Of(f.tokenizerConfig),
		CodeVersion:     buildinfo.String(),
	}
}

func sha256Of(text []byte) string {
	if text == nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

var firstRunLine = regexp.MustCompile(`\A# Run ([0-9a-f]{16}), made in `)

// run returns the id of the run, or "" if it has none.
func (f *runFiles) run() string {
	if m := firstRunLine.FindSubmatch(f.config); m != nil {
		return string(m[1])
	}
	return ""
}

// write puts the files into the directory. The configuration comes last and whole: a directory without it is not yet a
// run, and one with it must have a tokenizer even if the power is cut.
func (f *runFiles) write(d runDir) error {
	if err := writeSynced(d.tokenizer(), f.tokenizer); err != nil {
		return err
	}
	if err := writeSynced(d.tokenizerConfig(), f.tokenizerConfig); err != nil {
		return err
	}
	if f.branch != nil {
		if err := writeSynced(d.branch(), f.branch); err != nil {
			return err
		}
	}
	return writeDurably(d.config(), f.config)
}

// writeSynced writes a file and waits until its bytes are on the disk.
func writeSynced(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// CheckOrigin returns an error if a checkpoint of the run in dir was made by another run, or with another tokenizer.
func CheckOrigin(dir string, info checkpoint.Info) error { return runDir(dir).checkOrigin(info) }

// checkOrigin returns an error if a checkpoint in d was made by another run, or with another tokenizer than the run
// has now. A changed config.yaml is not an error, because users edit it. Checkpoints of early versions record neither.
func (d runDir) checkOrigin(info checkpoint.Info) error {
	f, err := d.readFiles()
	if err != nil {
		return err
	}
	made, now := info.Origin, f.origin()
	switch {
	case made.Run == now.Run:
	case now.Run == "":
		return &dataset.Error{Err: fmt.Errorf("%s does not name its run, but %s belongs to the run %[3]s\n"+
			"  restore the file; its first line begins with \"# Run %[3]s\"", d.config(), info.Name, made.Run)}
	default:
		return fmt.Errorf("%s in %s %w: it belongs to the run %s, but %s to the run %s\n"+
			"  move away what was copied here from another run",
			info.Name, d.checkpoints(), checkpoint.ErrOtherRun, made.RunName(), d.config(), now.Run)
	}
	for _, c := range []struct{ path, made, now string }{
		{d.tokenizer(), made.Tokenizer, now.Tokenizer},
		{d.tokenizerConfig(), made.TokenizerConfig, now.TokenizerConfig},
	} {
		if c.made != "" && c.now == "" {
			return &dataset.Error{Err: fmt.Errorf("%s is missing\n"+
				"  restore it; the directory of the data set has the same file", c.path)}
		}
		if c.made != "" && c.made != c.now {
			return &dataset.Error{Err: fmt.Errorf("%s is not the file that %s was made with: its sha256 is %.12s…, "+
				"but should be %.12s…\n"+
				"  restore it; the directory of the data set has the same file", c.path, info.Name, c.now, c.made)}
		}
	}
	return nil
}
