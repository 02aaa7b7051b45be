//go:build !linux

package fsx

import (
	"errors"
	"os"
)

// CreateUnnamed makes a file in a folder for writing, mode 0600, that is gone with the
// process unless NameUnnamed gives it a name. Not every system can.
func CreateUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// NameUnnamed gives a file of CreateUnnamed a name in the same file system. One that is
// taken is fs.ErrExist.
func NameUnnamed(*os.File, string) error { return errors.ErrUnsupported }
