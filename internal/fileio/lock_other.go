//go:build !unix

package fileio

import "os"

// Lock does nothing: the locks of this system would keep a directory from being renamed.
func Lock(*os.File) error { return nil }

// Locked returns false: there are no locks.
func Locked(*os.File) bool { return false }

func hold(string) (release func(), err error) { return func() {}, nil }
