package tokenfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"

	"anneal/internal/fileio"
)

// llmC is the format of llm.c's dev/data scripts: a header of 256 int32 (magic, version, number of tokens), then the
// ids, with EOT before each document. GPT-2's magic means uint16 ids, Llama 3's uint32. A file holds 100 million
// tokens; documents continue in the next file.
var llmC = Format{
	Name:    "llmc",
	Help:    "train_000001.bin …: a header of 1 KiB, 100 million ids per file, end of text before each document",
	pattern: func(split string) string { return split + "_[0-9][0-9][0-9][0-9][0-9][0-9].bin" },
	create: func(dir, split string, v Vocabulary) (Writer, error) {
		return &llmcWriter{dir: dir, split: split, v: v, most: llmcTokens}, nil
	},
	read: readLLMC,
}

const (
	llmcHeader   = 1024
	llmcMagic16  = 20240520
	llmcVersion  = 1
	llmcMagic32  = 20240801
	llmcVersion7 = 7
	llmcTokens   = 100e6
)

type llmcWriter struct {
	dir, split string
	v          Vocabulary
	most       uint64 // tokens per file
	files      int
	raw        *rawWriter
}

func (w *llmcWriter) Write(document []uint32) error {
	if err := w.tokens([]uint32{w.v.EOT}); err != nil {
		return err
	}
	return w.tokens(document)
}

func (w *llmcWriter) tokens(ids []uint32) error {
	for len(ids) > 0 {
		if w.raw != nil && w.raw.tokens == w.most {
			if err := w.Close(); err != nil {
				return err
			}
		}
		if w.raw == nil {
			w.files++
			raw, err := createRaw(filepath.Join(w.dir, fmt.Sprintf("%s_%06d.bin", w.split, w.files)), w.v.Width())
			if err != nil {
				return err
			}
			w.raw = raw
			if _, err := raw.w.Write(make([]byte, llmcHeader)); err != nil {
				return err
			}
		}
		n := min(uint64(len(ids)), w.most-w.raw.tokens)
		if err := w.raw.write(ids[:n]...); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// Close ends the current file.
func (w *llmcWriter) Close() error {
	if w.raw == nil {
		return nil
	}
	var head [12]byte
	magic, version := uint32(llmcMagic16), uint32(llmcVersion)
	if w.v.Width() == 4 {
		magic, version = llmcMagic32, llmcVersion7
	}
	binary.LittleEndian.PutUint32(head[:], magic)
	binary.LittleEndian.PutUint32(head[4:], version)
	binary.LittleEndian.PutUint32(head[8:], uint32(w.raw.tokens))
	raw := w.raw
	w.raw = nil
	err := raw.w.Flush()
	if err == nil {
		_, err = raw.f.WriteAt(head[:], 0)
	}
	if e := raw.close(); err == nil {
		err = e
	}
	return err
}

func readLLMC(path string, v Vocabulary, d *documents) error {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var head [llmcHeader]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return fmt.Errorf("too short for the 1,024-byte header of an llm.c file")
	}
	magic, version := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	width := 0
	switch {
	case magic == llmcMagic16 && version == llmcVersion:
		width = 2
	case magic == llmcMagic32 && version == llmcVersion7:
		width = 4
	default:
		return fmt.Errorf("magic %d, version %d: not an llm.c token file (%d, %d for GPT-2; %d, %d for Llama 3)",
			magic, version, llmcMagic16, llmcVersion, llmcMagic32, llmcVersion7)
	}
	tokens := int64(int32(binary.LittleEndian.Uint32(head[8:])))
	if tokens < 0 {
		return fmt.Errorf("the header says %d tokens", tokens)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if size := llmcHeader + tokens*int64(width); info.Size() != size {
		return fmt.Errorf("the header says %d tokens, which need %d bytes, but the file has %d\n"+
			"  restore it from a copy", tokens, size, info.Size())
	}
	return readRaw(f, width, tokens, d)
}
