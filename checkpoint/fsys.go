package checkpoint

import (
	"io"
	"os"
)

// filesystem has every operation that the package uses to change the disk. Tests replace it by one that fails, or
// stops for ever, at a chosen operation.
type filesystem interface {
	Mkdir(path string) error
	Create(path string) (writable, error) // the file must not exist
	Rename(from, to string) error
	Remove(path string) error
	RemoveAll(path string) error
	SyncDir(path string) error
}

type writable interface {
	io.Writer
	Sync() error
	Close() error
}

// disk is the filesystem of the machine.
type disk struct{}

func (disk) Mkdir(path string) error      { return os.Mkdir(path, 0o755) }
func (disk) Rename(from, to string) error { return os.Rename(from, to) }
func (disk) Remove(path string) error     { return os.Remove(path) }
func (disk) RemoveAll(path string) error  { return os.RemoveAll(path) }

func (disk) Create(path string) (writable, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}
