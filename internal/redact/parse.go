package redact

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Rules are the rules of one file, in its order. Nil rules change nothing.
type Rules struct{ rules []rule }

// rule replaces a literal, or what a pattern matches.
type rule struct {
	literal string
	pattern *regexp.Regexp // nil for a literal
	with    string
	line    int
}

// FileError says what is wrong with a line of a redaction file.
type FileError struct {
	Line int // from 1
	Msg  string
}

func (e *FileError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

const (
	arrow       = " ==> "
	regexPrefix = "regex:"
)

// Parse reads a redaction file. It fails with *FileError.
func Parse(file []byte) (*Rules, error) {
	r := &Rules{}
	file = bytes.TrimPrefix(file, []byte("\uFEFF"))
	line := 0
	for text := range bytes.Lines(file) {
		line++
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		next, msg := parseRule(text)
		if msg != "" {
			return nil, &FileError{Line: line, Msg: msg}
		}
		next.line = line
		r.rules = append(r.rules, next)
	}
	for _, one := range r.rules {
		for _, other := range r.rules {
			if other.matches(one.with) {
				return nil, &FileError{Line: one.line, Msg: fmt.Sprintf("the replacement matches what line %d replaces", other.line)}
			}
		}
	}
	return r, nil
}

func parseRule(text []byte) (r rule, msg string) {
	if !utf8.Valid(text) {
		return r, "not UTF-8"
	}
	from, with, found := strings.Cut(string(text), arrow)
	if !found {
		return r, `no " ==> " between what is replaced and its replacement`
	}
	r.with = with
	pattern, isPattern := strings.CutPrefix(from, regexPrefix)
	if !isPattern {
		if r.literal = from; from == "" {
			msg = `nothing stands in front of " ==> "`
		}
		return r, msg
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil {
		r.pattern, err = regexp.Compile(pattern)
	}
	if err != nil {
		return r, err.Error()
	}
	if shortest(tree) == 0 {
		return r, "the pattern can match the empty string"
	}
	return r, ""
}

// shortest is how many characters a match has at least.
func shortest(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * shortest(re.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, sub := range re.Sub {
			n += shortest(sub)
		}
		return n
	case syntax.OpAlternate:
		n := shortest(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			n = min(n, shortest(sub))
		}
		return n
	}
	return 0 // what matches between characters, or may be left out
}
