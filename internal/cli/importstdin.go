package cli

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/drover-run/drover/pkg/v3import"
)

// stdinName is stdin among the paths of files.
const stdinName = "-"

// spool is stdin as a file, since an import reads a session more than once.
type spool struct{ path string }

// spoolStdin copies stdin into a temporary file when the paths name it, and puts
// that file in its place. remove takes the file away again.
func spoolStdin(paths []string, stdin io.Reader) (s spool, replaced []string, remove func(), err error) {
	at := slices.Index(paths, stdinName)
	if at < 0 {
		return spool{}, paths, func() {}, nil
	}
	f, err := os.CreateTemp("", "drover-stdin-*.jsonl")
	if err != nil {
		return spool{}, nil, nil, fmt.Errorf("keep stdin: %w", err)
	}
	s, remove = spool{f.Name()}, func() { _ = os.Remove(f.Name()) }
	_, err = io.Copy(f, stdin)
	if err = firstOf(err, f.Close()); err != nil {
		remove()
		return spool{}, nil, nil, fmt.Errorf("keep stdin: %w", err)
	}
	replaced = slices.Clone(paths)
	for i := range replaced {
		if replaced[i] == stdinName {
			replaced[i] = s.path
		}
	}
	return s, replaced, remove, nil
}

// mark says of the file that it goes away again.
func (s spool) mark(sources []v3import.Source) {
	for i := range sources {
		if s.path != "" && sources[i].Path == s.path {
			sources[i].Passing = true
		}
	}
}

// named gives an item of the file back the name that it was typed with.
func (s spool) named(item v3import.Item) v3import.Item {
	if s.path == "" || item.Source != s.path {
		return item
	}
	item.Source = stdinName
	if item.Failure != nil {
		f := *item.Failure
		f.Path = stdinName
		item.Failure = &f
	}
	return item
}
