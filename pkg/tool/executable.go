package tool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CheckProgram says why a command could not be started, and what to do about it. The
// program is found as a supervisor does: without a slash in the PATH, which env, a
// list of NAME=value beside this process's own environment, may replace.
func CheckProgram(program string, env []string) error {
	if strings.ContainsRune(program, filepath.Separator) {
		return checkExecutable(program)
	}
	path := os.Getenv("PATH")
	for _, v := range env {
		if given, ok := strings.CutPrefix(v, "PATH="); ok {
			path = given
		}
	}
	for _, dir := range filepath.SplitList(path) {
		found := filepath.Join(dir, program)
		if _, err := exec.LookPath(found); err == nil && filepath.IsAbs(dir) {
			return checkExecutable(found)
		}
	}
	return fmt.Errorf("%s is not in the PATH: install it, or give its path", program)
}

func checkExecutable(path string) error {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not there: install it, or correct the path", path)
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%s is no file, and so no program", path)
	}
	if _, err := exec.LookPath(path); errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s may not be executed: chmod +x lets it", path)
	} else if err != nil {
		return err
	}
	return checkScript(path)
}

// checkScript says why the system could not execute a file that it may: a text has to
// name what it is interpreted by.
func checkScript(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // one may execute what one may not read
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 256)) // what the system looks at
	script, found := bytes.CutPrefix(head, []byte("#!"))
	if !found {
		if bytes.IndexByte(head, 0) < 0 {
			return fmt.Errorf("%s cannot be executed: it is a text whose first line does not name an interpreter, such as #!/bin/sh", path)
		}
		return nil
	}
	line, _, _ := bytes.Cut(script, []byte("\n"))
	interpreter, _, _ := strings.Cut(strings.Trim(string(line), " \t"), " ")
	if interpreter, _, _ = strings.Cut(interpreter, "\t"); interpreter != "" && !filepath.IsAbs(interpreter) {
		return nil // it depends on where it is started
	}
	if _, err := exec.LookPath(interpreter); err != nil {
		return fmt.Errorf("%s cannot be executed: its first line names the interpreter %q, which cannot be", path, interpreter)
	}
	return nil
}
