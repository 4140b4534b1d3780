package corpus

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"strings"
	"sync/atomic"

	"anneal/internal/fileio"
)

// Document is one document.
type Document struct {
	Source string // path of the file it came from
	File   int    // ordinal of that file in the order of reading
	Index  int    // ordinal among the delivered documents of Source (in a Split: of its part of Source), from 0
	Offset int64  // where it starts: bytes from the start of Source, after decompression; of parquet, the row, from 0
	Text   []byte // never empty; freshly allocated, the receiver may keep and change it

	// Fields of the document besides its text, if Options.Fields is set: members of a JSON object, separated by
	// commas. From JSON lines they are the bytes of the line, from parquet the other columns, from WARC the record's
	// headers.
	Fields []byte
	Moved  []byte // members that are written inside of "anneal", see Line
}

// Options says what to read and how much memory it may take. The zero value holds the defaults.
type Options struct {
	// key of the text in a line of JSON, or column of parquet ("a.b" is b in a); default "text"
	TextField string
	// extensions of the files to read in directories, such as ".go"; empty means all. Named files are always read
	Extensions []string
	// file or directory that the command writes, which need not exist yet. Where it lies below a directory of the
	// input, it is not read; "" for none
	Out string
	// files that the command reads as something else, such as its tokenizer. Below a directory of the input they are
	// not read; named as input they are
	Skip        []string
	MaxDocument int          // bytes of the longest plain-text file that is kept whole; default 1 MiB
	Piece       int          // bytes of the longest piece of a longer one; default 64 KiB
	MaxLine     int          // bytes of the longest line of JSON, record of WARC and text of parquet; default 16 MiB
	MaxRatio    int          // bytes that a compressed byte may expand to, after the first 64 MiB; default 500
	Fields      bool         // deliver the other fields of documents
	OnReject    func(Reject) // called for each thing left out, in order; may be nil
}

func (o Options) withDefaults() Options {
	if o.TextField == "" {
		o.TextField = "text"
	}
	if o.MaxDocument <= 0 {
		o.MaxDocument = 1 << 20
	}
	if o.Piece <= 0 {
		o.Piece = 64 << 10
	}
	o.Piece = min(o.Piece, o.MaxDocument)
	if o.MaxLine <= 0 {
		o.MaxLine = LongestLine
	}
	if o.MaxRatio <= 0 {
		o.MaxRatio = 500
	}
	return o
}

// Reader delivers the documents of a list of files and directories. It is for one goroutine at a time, except for
// BytesRead, which any goroutine may call.
type Reader struct {
	opt     Options
	paths   []string
	files   []string // in the order of reading
	sizes   []int64  // of the files on disk
	size    int64
	first   int      // ordinal of files[0] in the whole input
	split   bool     // this Reader reads a split, which need not hold a document
	part    part     // of each file
	listing []Reject // skipped by the walk
	report  Report
	read    atomic.Int64
}

// Open finds the files under paths. It returns an error that names the path if one does not exist or cannot be read.
// Files that it skips inside a directory are counted in the Report, except for the output.
func Open(paths []string, opt Options) (*Reader, error) {
	if len(paths) == 0 {
		return nil, errors.New("no input\n  name at least one file or directory")
	}
	w := walker{extensions: extensionSet(opt.Extensions), seen: map[string]bool{}, skip: map[string]bool{}}
	if opt.Out != "" {
		w.out, _ = resolve(opt.Out) // where this fails nothing can be written; the command that tries says why
	}
	for _, p := range opt.Skip {
		if real, err := resolve(p); err == nil {
			w.skip[real] = true
		}
	}
	for _, p := range paths {
		if err := w.root(p); err != nil {
			return nil, err
		}
	}
	return &Reader{opt: opt.withDefaults(), paths: paths, files: w.files, sizes: w.sizes, size: w.size,
		listing: w.rejects, part: whole}, nil
}

// Files returns the files that Documents will read, in order.
func (r *Reader) Files() []string { return r.files }

// Size returns the number of bytes on disk that Documents will read.
func (r *Reader) Size() int64 { return r.size }

// BytesRead returns how many of those bytes the current call of Documents has read.
func (r *Reader) BytesRead() int64 { return min(r.read.Load(), r.size) }

// KeepFields sets whether the next call of Documents delivers fields; it overrides Options.Fields.
func (r *Reader) KeepFields(keep bool) { r.opt.Fields = keep }

// Listing returns the files that were skipped when the input was listed.
func (r *Reader) Listing() []Reject { return r.listing }

// Documents reads all documents in order. An error ends the sequence. Each call starts again from the first document
// and clears the Report.
func (r *Reader) Documents() iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		r.report = Report{}
		r.read.Store(0)
		for _, rej := range r.listing {
			r.reject(rej)
		}
		c := cutter{r: r, yield: yield, in: bufio.NewReaderSize(nil, peekBytes)}
		var done int64
		for i, path := range r.files {
			c.start(path, r.first+i)
			err := r.file(&c, path, r.sizes[i])
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(Document{}, err)
				return
			}
			done += r.sizes[i]
			r.read.Store(done) // for parquet this includes columns that were not read
		}
		if r.report.Documents == 0 && !r.split {
			yield(Document{}, r.nothing())
		}
	}
}

// errStop means that the receiver wants no more documents.
var errStop = errors.New("stop")

// file delivers the documents of one file. It returns an error only for errStop and for a failing disk.
func (r *Reader) file(c *cutter, path string, size int64) error {
	c.onDisk = max(min(r.part.to, size)-r.part.from, 0)
	if r.part.bytes > 0 {
		c.onDisk = r.part.bytes
	}
	f, err := os.Open(path)
	if err != nil {
		c.loseRest(Reject{Reason: Unreadable, Detail: fileio.Cause(err).Error(), Bytes: c.onDisk})
		return nil
	}
	defer f.Close()
	if r.part.from == 0 {
		r.report.Files++
	}
	disk := &meter{f: f, total: &r.read}
	content := &bounded{disk: disk, ratio: int64(r.opt.MaxRatio)}
	err = r.content(c, content, kindOf(path))
	if err == nil || errors.Is(err, errStop) {
		return err
	}
	if disk.err != nil {
		return fmt.Errorf("read %s: %s\n  the documents in its first %d bytes on disk were read, the rest is missing",
			path, fileio.Cause(disk.err), disk.n)
	}
	rest := Reject{Reason: Corrupt, Detail: err.Error(), Bytes: c.onDisk}
	if content.n > 0 { // bytes not read, and bytes read but not delivered
		rest.Bytes = max(c.onDisk-content.consumed(), 0) + max(r.part.at+content.n-c.offset, 0)
	}
	switch {
	case errors.Is(err, errBomb):
		rest.Reason = Bomb
	case errors.Is(err, errCompression):
		rest.Reason = Unsupported
	}
	c.loseRest(rest)
	return nil
}

// content delivers the documents of one open file. An error may be the disk's or the file's.
func (r *Reader) content(c *cutter, src *bounded, k kind) error {
	if !k.isRead() {
		return errCompression
	}
	if k.format == parquetFile {
		info, err := src.disk.f.Stat()
		if err != nil {
			return err
		}
		return c.rows(src.disk, info.Size(), r.part)
	}
	if _, err := src.disk.f.Seek(r.part.from, io.SeekStart); err != nil {
		return err
	}
	if k.compression != "" && c.onDisk == 0 {
		return errors.New("the file is empty: a compressed file never is")
	}
	if err := src.open(k); err != nil {
		return err
	}
	defer src.Close()
	c.in.Reset(src)
	if k.format == warcFile {
		if k.compression != "" {
			return c.warc(math.MaxInt64)
		}
		return c.warc(c.onDisk)
	}
	c.guessed = k.ext == ".json"
	if head, _ := c.in.Peek(peekBytes); r.part.at > 0 && k.format == linesFile || k.jsonLines(head) {
		return c.lines(r.part)
	}
	return c.text(r.part)
}

// nothing returns the error for an input without a document.
func (r *Reader) nothing() error {
	s := fmt.Sprintf("no documents in %s", strings.Join(r.paths, ", "))
	for _, c := range r.report.Rejects {
		s += "\n  " + c.Text()
	}
	return errors.New(s + "\n  try files of UTF-8 text, or .jsonl or .parquet files with a \"" +
		r.opt.TextField + "\" field")
}

// meter counts the bytes read and keeps the error, to distinguish a failing disk from a damaged file.
type meter struct {
	f     *os.File
	n     int64
	err   error
	total *atomic.Int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.f.Read(p)
	return m.count(n, err)
}

func (m *meter) ReadAt(p []byte, offset int64) (int, error) {
	n, err := m.f.ReadAt(p, offset)
	return m.count(n, err)
}

func (m *meter) count(n int, err error) (int, error) {
	m.n += int64(n)
	m.total.Add(int64(n))
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}
