package rawjson

import "bytes"

// Set returns the object obj with the value of its last member named key
// replaced, or with such a member appended when there is none. Every other
// byte stays as it is. It fails when obj is not exactly one object or value
// not exactly one value, which is put in as given. The result is a new slice.
func Set(obj []byte, key string, value []byte) ([]byte, error) {
	if err := Valid(value); err != nil {
		return nil, err
	}
	var found, last Member
	err := MembersFunc(obj, func(m Member) bool {
		if last = m; KeyIs(m.Key, key) {
			found = m
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(obj)+len(key)+len(value)+8)
	if found.Key != nil {
		out = append(out, obj[:found.End-len(found.Value)]...)
		out = append(out, value...)
		return append(out, obj[found.End:]...), nil
	}
	at := last.End
	if last.Key == nil {
		at = bytes.IndexByte(obj, '{') + 1
	}
	out = append(out, obj[:at]...)
	if last.Key != nil {
		out = append(out, ',')
	}
	out = append(AppendQuote(out, key), ':')
	out = append(out, value...)
	return append(out, obj[at:]...), nil
}

// Delete returns the object obj without the members named key. The others keep
// their bytes and the separator in front of them. It fails when obj is not
// exactly one object. The result is a new slice.
func Delete(obj []byte, key string) ([]byte, error) {
	out := make([]byte, 0, len(obj))
	var kept, seen bool
	end := 0 // of the previous member
	err := MembersFunc(obj, func(m Member) bool {
		if !seen {
			out = append(out, obj[:m.Start]...)
		}
		if !KeyIs(m.Key, key) {
			// The first one that stays takes the place of the first of all.
			if kept {
				out = append(out, obj[end:m.Start]...)
			}
			out = append(out, obj[m.Start:m.End]...)
			kept = true
		}
		seen, end = true, m.End
		return true
	})
	if err != nil {
		return nil, err
	}
	return append(out, obj[end:]...), nil
}
