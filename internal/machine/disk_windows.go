package machine

import (
	"os"

	"golang.org/x/sys/windows"
)

// FreeDisk returns the bytes available to the user on the file system of path.
func FreeDisk(path string) (int64, error) {
	name, err := windows.UTF16PtrFromString(path)
	var free uint64
	if err == nil {
		err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	}
	if err != nil {
		return 0, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: path, Err: err}
	}
	return int64(free), nil
}
