package anthropic

import "strings"

// family is what generations of models differ in; their descriptions do not say
// it, so the id has to.
type family struct {
	// adaptive models decide themselves how long they think and take an effort;
	// the others take a budget of tokens.
	adaptive bool
	// always models cannot be told not to think.
	always bool
	// thinks models think unless told not to.
	thinks bool
	// bound models refuse thinking whose conversation changed since, unless asked
	// to leave it out.
	bound bool
	// interleaves models think between tool calls only when a header asks for it.
	interleaves bool
	// sampling models take a temperature while they do not think.
	sampling bool
}

// familyOf reads a model id, such as claude-opus-4-5-20251101 or one with a
// vendor's prefix. A model of another make behind a compatible endpoint takes
// budgets, the older form; a version that is not known counts as a new one.
func familyOf(id string) family {
	id = strings.ToLower(id)
	_, name, ok := strings.Cut(id, "claude")
	if !ok {
		return family{sampling: true}
	}
	v, ok := versionIn(name)
	mythos := strings.Contains(name, "mythos")
	switch {
	case !ok:
		return family{adaptive: true, always: mythos, thinks: mythos}
	case v < version(4, 6):
		return family{interleaves: v >= version(4, 0), sampling: true}
	}
	f := family{adaptive: true, thinks: v >= version(5, 0), bound: v >= version(5, 1) && !mythos, sampling: v < version(4, 7)}
	f.always = mythos || strings.Contains(name, "fable") || strings.Contains(name, "opus") && v >= version(5, 5)
	return f
}

func version(major, minor int) int { return 100*major + minor }

// versionIn finds the numbers of a name: the first is the major version, one
// right behind it the minor; longer ones are dates.
func versionIn(name string) (int, bool) {
	parts := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-_.@:/ ", r) })
	for i, part := range parts {
		major, ok := smallNumber(part)
		if !ok {
			continue
		}
		minor := 0
		if i+1 < len(parts) {
			minor, _ = smallNumber(parts[i+1])
		}
		return version(major, minor), true
	}
	return 0, false
}

// smallNumber reads a number of one or two digits.
func smallNumber(s string) (int, bool) {
	if s == "" || len(s) > 2 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = 10*n + int(s[i]-'0')
	}
	return n, true
}
