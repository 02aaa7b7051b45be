package anthropic

import "bytes"

// escapeLen is the length of an escaped UTF-16 unit.
const escapeLen = len(`\u0000`)

// repairSurrogates replaces, in place, every escaped half of a surrogate pair
// that has no partner. Stored text may have one, where a stream was cut inside a
// character; the API refuses a request with one.
func repairSurrogates(body []byte) {
	for i := 0; ; {
		at := bytes.IndexByte(body[i:], '\\')
		if at < 0 {
			return
		}
		i += at
		switch half := surrogateAt(body, i); {
		case half == 0:
			i += 2 // the escaped character, too: it may be a backslash
		case half == 'h' && surrogateAt(body, i+escapeLen) == 'l':
			i += 2 * escapeLen
		default:
			copy(body[i:], `\ufffd`)
			i += escapeLen
		}
	}
}

// surrogateAt returns h for the escape of a high half at an index, l for that of
// a low one, else 0.
func surrogateAt(body []byte, i int) byte {
	if len(body)-i < escapeLen || body[i] != '\\' || body[i+1] != 'u' || body[i+2]|0x20 != 'd' {
		return 0
	}
	switch body[i+3] | 0x20 {
	case '8' | 0x20, '9' | 0x20, 'a', 'b':
		return 'h'
	case 'c', 'd', 'e', 'f':
		return 'l'
	}
	return 0
}
