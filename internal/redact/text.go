package redact

import "strings"

// matches reports whether there is anything to replace in a text.
func (r *Rule) matches(s string) bool {
	if r.Pattern != nil {
		return r.Pattern.MatchString(s)
	}
	return strings.Contains(s, r.Literal)
}

// apply replaces every match and counts them.
func (r *Rule) apply(s string) (string, int) {
	if r.Pattern == nil {
		n := strings.Count(s, r.Literal)
		return strings.ReplaceAll(s, r.Literal, r.With), n
	}
	n := 0
	s = r.Pattern.ReplaceAllStringFunc(s, func(string) string {
		n++
		return r.With
	})
	return s, n
}

// Matches reports whether there is anything to replace in a text.
func (r *Rules) Matches(s string) bool { return r.match(s) != nil }

func (r *Rules) match(s string) *Rule {
	if r == nil {
		return nil
	}
	for i := range r.rules {
		if r.rules[i].matches(s) {
			return &r.rules[i]
		}
	}
	return nil
}

// rounds is how often a text is gone over. A replacement never matches by
// itself, but together with what is beside it.
const rounds = 8

// Text replaces what matches in a text and counts the replacements. Nothing in
// the result matches: a text that cannot be brought there piece by piece is
// replaced as a whole.
func (r *Rules) Text(s string) (string, int) {
	if r.match(s) == nil {
		return s, 0
	}
	total := 0
	for range rounds {
		for i := range r.rules {
			var n int
			s, n = r.rules[i].apply(s)
			total += n
		}
		if r.match(s) == nil {
			return s, total
		}
	}
	return r.match(s).With, total + 1
}
