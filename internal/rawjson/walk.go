package rawjson

import "iter"

// Members yields the members of the object b in order, duplicates included.
// Text that is not exactly one object yields one error, after the members in
// front of the fault, and ends.
func Members(b []byte) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		stopped := false
		err := MembersFunc(b, func(m Member) bool {
			stopped = !yield(m, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(Member{}, err)
		}
	}
}

// MembersFunc calls fn with each member of the object b in order, duplicates
// included, until fn returns false. It returns a *SyntaxError when b is not
// exactly one object, after the members in front of the fault; what follows
// the member at which fn stopped is not looked at. It does not allocate.
func MembersFunc(b []byte, fn func(Member) bool) error {
	if i, msg := eachMember(b, fn); msg != "" {
		return &SyntaxError{Offset: i, Msg: msg}
	}
	return nil
}

func eachMember(b []byte, fn func(Member) bool) (int, string) {
	i, done, msg := open(b, '{', '}', msgObject)
	for !done && msg == "" {
		var m Member
		if m, i, msg = scanMember(b, i); msg != "" {
			break
		}
		if !fn(m) {
			return i, ""
		}
		i, done, msg = next(b, i, '}', msgObjectSep)
	}
	return i, msg
}

// scanMember scans the member whose name starts at b[i].
func scanMember(b []byte, i int) (m Member, end int, msg string) {
	m.Start = i
	if i >= len(b) || b[i] != '"' {
		return m, i, orEnd(b, i, msgKey)
	}
	if i, msg = scanString(b, i); msg != "" {
		return m, i, msg
	}
	m.Key = b[m.Start:i:i]
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return m, i, orEnd(b, i, msgColon)
	}
	start := skipSpace(b, i+1)
	if i, _, msg = scan(b, start); msg != "" {
		return m, i, msg
	}
	m.Value, m.End = b[start:i:i], i
	return m, i, ""
}

// open enters the container b and returns the start of its first item; done
// when it is empty and nothing but white space follows.
func open(b []byte, left, right byte, want string) (i int, done bool, msg string) {
	i = skipSpace(b, 0)
	if i >= len(b) || b[i] != left {
		return i, false, orEnd(b, i, want)
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == right {
		i, msg = trailing(b, i+1)
		return i, true, msg
	}
	return i, false, ""
}

// next moves from the end of an item to the start of the next one; done when
// the container ends there and nothing but white space follows.
func next(b []byte, i int, right byte, want string) (start int, done bool, msg string) {
	i = skipSpace(b, i)
	switch {
	case i >= len(b):
		return i, false, msgEnd
	case b[i] == ',':
		return skipSpace(b, i+1), false, ""
	case b[i] == right:
		i, msg = trailing(b, i+1)
		return i, true, msg
	}
	return i, false, want
}

func trailing(b []byte, i int) (int, string) {
	if i = skipSpace(b, i); i < len(b) {
		return i, msgTrailing
	}
	return i, ""
}

// Elements yields the raw elements of the array b in order, aliasing b. Text
// that is not exactly one array yields one error, after the elements in front
// of the fault, and ends.
func Elements(b []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		stopped := false
		err := ElementsFunc(b, func(start, end int) bool {
			stopped = !yield(b[start:end:end], nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// ElementsFunc calls fn with the bounds of each element of the array b in order
// until fn returns false. It returns a *SyntaxError when b is not exactly one
// array, after the elements in front of the fault; what follows the element at
// which fn stopped is not looked at. It does not allocate.
func ElementsFunc(b []byte, fn func(start, end int) bool) error {
	i, done, msg := open(b, '[', ']', msgArray)
	for !done && msg == "" {
		start := i
		if i, _, msg = scan(b, start); msg != "" {
			break
		}
		if !fn(start, i) {
			return nil
		}
		i, done, msg = next(b, i, ']', msgArraySep)
	}
	if msg != "" {
		return &SyntaxError{Offset: i, Msg: msg}
	}
	return nil
}
