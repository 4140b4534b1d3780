//go:build !unix

package filetest

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
