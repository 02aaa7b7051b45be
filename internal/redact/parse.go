package redact

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Rule is one line of a file: a literal or what a pattern matches is replaced.
type Rule struct {
	Line    int // from 1
	Literal string
	Pattern *regexp.Regexp // nil for a literal
	With    string         // taken as it stands
}

// Rules are the rules of one file, in its order. Nil rules change nothing.
type Rules struct{ rules []Rule }

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
	rules, err := ParseFile(file)
	if err != nil {
		return nil, err
	}
	return &Rules{rules}, Settled(rules, func(i int, text string) bool { return rules[i].matches(text) })
}

// ParseFile reads the rules of a redaction file. It fails with *FileError, which
// never shows what a line says.
func ParseFile(file []byte) ([]Rule, error) {
	var rules []Rule
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
		next.Line = line
		rules = append(rules, next)
	}
	return rules, nil
}

// Settled refuses, with *FileError, a replacement that would have to be replaced
// again; matches asks rule i.
func Settled(rules []Rule, matches func(i int, text string) bool) error {
	for _, one := range rules {
		for i := range rules {
			if matches(i, one.With) {
				return &FileError{Line: one.Line, Msg: fmt.Sprintf("the replacement matches what line %d replaces", rules[i].Line)}
			}
		}
	}
	return nil
}

func parseRule(text []byte) (r Rule, msg string) {
	if !utf8.Valid(text) {
		return r, "not UTF-8"
	}
	from, with, found := strings.Cut(string(text), arrow)
	if !found {
		return r, `no " ==> " between what is replaced and its replacement`
	}
	r.With = with
	pattern, isPattern := strings.CutPrefix(from, regexPrefix)
	if !isPattern {
		if r.Literal = from; from == "" {
			msg = `nothing stands in front of " ==> "`
		}
		return r, msg
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err == nil {
		r.Pattern, err = regexp.Compile(pattern)
	}
	if err != nil {
		return r, "the pattern does not compile: " + reasonOf(err)
	}
	if shortest(tree) == 0 {
		return r, "the pattern can match the empty string"
	}
	return r, ""
}

// reasonOf is why a pattern does not compile, without the pattern.
func reasonOf(err error) string {
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		return bad.Code.String()
	}
	return "it is no regular expression"
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
