package curate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"anneal/corpus"
	"anneal/internal/fileio"
)

// Everything that is left out is listed, one corpus.Reject as JSON per line: by split in rejects/, so that a stopped
// run need not read again, and at the end in rejects.jsonl, after the rejects that belong to no split.

const rejectsDir = "rejects"

func rejectLine(rej corpus.Reject) []byte {
	line, err := json.Marshal(rej)
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(line, '\n')
}

// reject lists an item that the current split could not use. It keeps the first error of the disk in rejectFault.
func (w *worker) reject(rej corpus.Reject) {
	if w.rejects == nil && w.rejectFault == nil {
		w.rejectFault = w.create(&w.rejects, shardName(rejectsDir, w.at), true)
	}
	if w.rejectFault == nil {
		_, w.rejectFault = w.rejects.Write(rejectLine(rej))
	}
}

// listRejects writes rejects.jsonl, if anything was rejected.
func (r *runner) listRejects() error {
	path := filepath.Join(r.o.Dir, "rejects.jsonl")
	var shards []string
	for i, e := range r.state.maps[0] {
		if _, has := e.Files[shardName(rejectsDir, i)]; has {
			shards = append(shards, shardName(rejectsDir, i))
		}
	}
	if len(shards) == 0 {
		_ = os.Remove(filepath.Join(r.o.Dir, rejectsDir)) // of another input; fails if it is not empty
	}
	listing := r.origin.listing()
	if len(shards)+len(listing) == 0 {
		return os.RemoveAll(path)
	}
	f, err := os.Create(fmt.Sprintf("%s.%d.tmp", path, r.o.TaskIndex))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	out := bufio.NewWriter(f)
	for _, rej := range listing {
		out.Write(rejectLine(rej))
	}
	for _, name := range shards {
		if err := unpack(out, r.o.Dir, name); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return fileio.Put(f, path)
}

// sameRejects copies the list of an earlier run of the split, in dir.
func (w *worker) sameRejects(e *record, dir string) error {
	name := shardName(rejectsDir, w.at)
	if _, has := e.Files[name]; !has {
		return nil
	}
	if err := w.create(&w.rejects, name, true); err != nil {
		return err
	}
	return unpack(w.rejects, dir, name)
}

// unpack writes the lines of a shard.
func unpack(out io.Writer, dir, shard string) error {
	in, err := openShard(dir, shard)
	if err != nil {
		return err
	}
	defer in.close()
	_, err = io.Copy(out, in.z)
	return err
}
