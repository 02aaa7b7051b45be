package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
)

// RuleError is a line of a redaction file that is no rule.
type RuleError struct {
	Line int // from 1
	Msg  string
}

func (e *RuleError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// rule replaces what it matches. Exactly one of literal and pattern is set.
type rule struct {
	line        int
	literal     *literal
	pattern     *regexp.Regexp
	replacement string
}

// Rules are the replacements of a redaction file (D54). The zero value has none.
type Rules struct {
	rules    []rule
	patterns bool // some rule is a pattern
}

// arrow stands between what is replaced and what takes its place.
const arrow = " ==> "

// patternMark begins a rule whose left side is a regular expression.
const patternMark = "regex:"

// ParseRules reads a redaction file: one `literal ==> replacement` or
// `regex:PATTERN ==> replacement` a line, nothing trimmed; lines that begin with
// # and empty ones are skipped. It fails with *RuleError, which never shows what
// the line says.
func ParseRules(r io.Reader) (*Rules, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	rules := new(Rules)
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := rules.add(i+1, line); err != nil {
			return nil, &RuleError{Line: i + 1, Msg: err.Error()}
		}
	}
	return rules, rules.checkReplacements()
}

func (rs *Rules) add(n int, line string) error {
	if !utf8.ValidString(line) {
		return errors.New("is not UTF-8")
	}
	left, replacement, ok := strings.Cut(line, arrow)
	if !ok {
		return errors.New("has no ` ==> ` between what is replaced and its replacement")
	}
	next := rule{line: n, replacement: replacement}
	pattern, isPattern := strings.CutPrefix(left, patternMark)
	switch {
	case isPattern:
		re, err := regexp.Compile(pattern)
		if err != nil {
			return errors.New("the pattern does not compile: " + reasonOf(err))
		}
		if re.MatchString("") {
			return errors.New("the pattern matches the empty text")
		}
		next.pattern = re
		rs.patterns = true
	case left == "":
		return errors.New("nothing stands before the ` ==> `")
	default:
		next.literal = newLiteral(left)
	}
	rs.rules = append(rs.rules, next)
	return nil
}

// reasonOf is why a pattern does not compile, without the pattern.
func reasonOf(err error) string {
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		return bad.Code.String()
	}
	return "it is no regular expression"
}

// checkReplacements refuses what would have to be replaced again.
func (rs *Rules) checkReplacements() error {
	for _, r := range rs.rules {
		for _, other := range rs.rules {
			if other.matches([]byte(r.replacement), false) {
				return &RuleError{Line: r.line, Msg: fmt.Sprintf("the replacement matches the rule of line %d", other.line)}
			}
		}
	}
	return nil
}

// Empty reports whether there is no rule.
func (rs *Rules) Empty() bool { return rs == nil || len(rs.rules) == 0 }

func (r *rule) matches(text []byte, raw bool) bool {
	if r.pattern != nil {
		return r.pattern.Match(text)
	}
	start, _ := r.literal.find(text, raw)
	return start >= 0
}

// may reports whether a rule can match a text in the JSON value raw. Patterns are
// about decoded texts, of which only a walk over all of them knows.
func (rs *Rules) may(raw []byte) bool {
	if rs.Empty() {
		return false
	}
	if rs.patterns {
		return true
	}
	for i := range rs.rules {
		if rs.rules[i].matches(raw, true) {
			return true
		}
	}
	return false
}

// inText reports whether a rule matches a decoded text.
func (rs *Rules) inText(text []byte) bool {
	if rs == nil {
		return false
	}
	for i := range rs.rules {
		if rs.rules[i].matches(text, false) {
			return true
		}
	}
	return false
}

// rounds is how often the rules are applied to one text. What one replacement
// joins, another may match.
const rounds = 100

// ErrEndless is a text that the rules never come to an end with.
var ErrEndless = errors.New("the replacements make up new matches again and again")

// apply replaces every match in a decoded text. It returns the text itself when
// there is none.
func (rs *Rules) apply(text []byte) (out []byte, n int, err error) {
	out = text
	for range rounds {
		before := n
		for i := range rs.rules {
			var count int
			out, count = rs.rules[i].replace(out)
			n += count
		}
		if n == before {
			return out, n, nil
		}
	}
	return nil, n, ErrEndless
}

func (r *rule) replace(text []byte) (out []byte, n int) {
	last := 0
	put := func(start, end int, with []byte) {
		out = append(append(out, text[last:start]...), with...)
		last = end
		n++
	}
	if r.pattern != nil {
		for _, m := range r.pattern.FindAllIndex(text, -1) {
			if m[1] > m[0] { // \b and the like match nothing that could be replaced
				put(m[0], m[1], []byte(r.replacement))
			}
		}
	} else {
		r.literal.each(text, false, func(start, end int) bool {
			with := []byte(r.replacement)
			if !bytes.Equal(text[start:end], r.literal.plain) {
				with = inner(r.replacement) // JSON inside the text stays JSON
			}
			put(start, end, with)
			return true
		})
	}
	if n == 0 {
		return text, 0
	}
	return append(out, text[last:]...), n
}

// inner is a text as it stands between the quotes of a string literal.
func inner(text string) []byte {
	quoted := rawjson.Quote(text)
	return quoted[1 : len(quoted)-1]
}
