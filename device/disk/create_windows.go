package disk

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// create makes an empty file in a directory. Windows has no files without a name, but deletes this one when its handle
// is closed, which happens at the latest when the process ends.
func create(dir string) (*os.File, error) {
	for {
		name := filepath.Join(dir, ".anneal-offload-"+rand.Text())
		path, err := windows.UTF16PtrFromString(name)
		if err != nil {
			return nil, &os.PathError{Op: "create", Path: name, Err: err}
		}
		h, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE|windows.DELETE,
			windows.FILE_SHARE_DELETE, nil, windows.CREATE_NEW,
			windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
		switch {
		case err == nil:
			return os.NewFile(uintptr(h), name), nil
		case !errors.Is(err, windows.ERROR_FILE_EXISTS):
			return nil, &os.PathError{Op: "create", Path: name, Err: err}
		}
	}
}
