package rewrite

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/redact"
)

// rule replaces what it matches. Exactly one of literal and pattern is set.
type rule struct {
	literal     *literal
	pattern     *regexp.Regexp
	replacement string
}

// Rules are the replacements of a redaction file (D54). The zero value has none.
type Rules struct {
	rules    []rule
	patterns bool // some rule is a pattern
}

// ParseRules reads a redaction file. It fails with *redact.FileError.
func ParseRules(r io.Reader) (*Rules, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	lines, err := redact.ParseFile(text)
	if err != nil {
		return nil, err
	}
	rules := new(Rules)
	for _, l := range lines {
		next := rule{pattern: l.Pattern, replacement: l.With}
		if l.Pattern == nil {
			next.literal = newLiteral(l.Literal)
		}
		rules.patterns = rules.patterns || l.Pattern != nil
		rules.rules = append(rules.rules, next)
	}
	return rules, redact.Settled(lines, func(i int, text string) bool { return rules.rules[i].matches([]byte(text), false) })
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

// may reports whether a rule can match a text in the JSON value raw. Of decoded
// texts, which patterns are about, only a walk over all of them knows.
func (rs *Rules) may(raw []byte) bool {
	if rs.Empty() {
		return false
	}
	if rs.needText(raw) {
		return true
	}
	for i := range rs.rules {
		if rs.rules[i].matches(raw, true) {
			return true
		}
	}
	return false
}

// needText reports whether the raw form of a JSON value does not tell if a rule
// matches in it.
func (rs *Rules) needText(raw []byte) bool { return rs.patterns || roundabout(raw) }

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
