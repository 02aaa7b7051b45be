package resource

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Diagnostic says why a file, or a folder, is not used.
type Diagnostic struct {
	Path    string
	Message string
}

// maxFile is the largest file that is read, in bytes.
const maxFile = 1 << 20

// readText reads a Markdown file: UTF-8, its byte order mark and carriage
// returns at line ends removed.
func readText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", reason(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", reason(err)
	}
	switch {
	case len(b) > maxFile:
		return "", fmt.Errorf("it has more than %d bytes", maxFile)
	case !utf8.Valid(b):
		return "", errors.New("it is not UTF-8")
	}
	return plain(b), nil
}

// plain is a text without its byte order mark and the carriage returns at line
// ends.
func plain(b []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(b), "\ufeff"), "\r\n", "\n")
}

// reason leaves out the path, which the diagnostic names already.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// frontMatter decodes the YAML between two lines of three hyphens at the start
// into fields, and returns what follows; false when there is none. Fields that
// nobody asked for are left alone.
func frontMatter(text string, fields any) (body string, ok bool, err error) {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return text, false, nil
	}
	matter, body, ok := strings.Cut("\n"+rest, "\n---\n")
	if !ok {
		if matter, ok = strings.CutSuffix("\n"+rest, "\n---"); !ok {
			return "", true, errors.New("its front matter has no end")
		}
		body = ""
	}
	if err := yaml.Unmarshal([]byte(matter), fields); err != nil {
		return "", true, fmt.Errorf("its front matter is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return body, true, nil
}
