package secret

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// longestEscape bounds what spells one character, in bytes.
const longestEscape = 16

// follow spells a secret along a text. It returns the length of the longest spelling,
// 0 for none, and whether the text ends within one of which it has enough to tell.
func follow(text, secret string) (length int, cut bool) {
	ends := []int{0} // of the spellings of what has been read of the secret
	for seen := 0; secret != "" && len(ends) > 0; seen++ {
		_, size := utf8.DecodeRuneInString(secret)
		var next []int
		for _, end := range ends {
			rest := text[end:]
			escape := rest != "" && len(rest) < longestEscape && strings.IndexByte(escapes, rest[0]) >= 0
			cut = cut || seen >= tells && (rest == "" || escape)
			for _, n := range spellings(rest, secret[:size]) {
				if !slices.Contains(next, end+n) {
					next = append(next, end+n)
				}
			}
		}
		ends, secret = next, secret[size:]
	}
	for _, end := range ends {
		length = max(length, end)
	}
	return length, cut
}

// spellings are the lengths of the spellings of a character that a text begins with.
func spellings(text, char string) []int {
	var all []int
	if strings.HasPrefix(text, char) {
		all = append(all, len(char))
	}
	if text == "" {
		return all
	}
	switch text[0] {
	case '\\':
		if n := escapedUnit(text, '&'); n > 0 {
			for _, e := range entity("&"+text[n:], char) {
				all = append(all, n+e-len("&"))
			}
		}
		return append(all, escaped(text, char)...)
	case '%':
		return append(all, percent(text, char)...)
	case '+':
		if char == " " {
			all = append(all, 1)
		}
	case '&':
		return append(all, entity(text, char)...)
	}
	return all
}

// entity are the lengths of the HTML entities of a character that a text begins with,
// named or numbered, which may have been escaped again.
func entity(text, char string) []int {
	var all []int
	for i := range min(len(text), longestEscape) {
		if text[i] == ';' && unescapes(text[:i+1], char) {
			all = append(all, i+1)
		}
	}
	return all
}

// unescapes reports an HTML text that stands for a character.
func unescapes(text, char string) bool {
	for {
		plain := html.UnescapeString(text)
		if plain == char || plain == text {
			return plain == char
		}
		text = plain
	}
}

// escaped are the lengths of the escapes of a character that a text begins with, as in
// a JSON string, or in one within another, where backslashes are escaped again.
func escaped(text, char string) []int {
	slashes := len(text) - len(strings.TrimLeft(text, `\`))
	var all []int
	switch {
	case char == `\`:
		for n := 2; n <= slashes; n *= 2 {
			all = append(all, n)
		}
	case strings.HasPrefix(text[slashes:], char):
		all = append(all, slashes+len(char))
	}
	at := 0
	r, _ := utf8.DecodeRuneInString(char)
	for _, unit := range utf16.AppendRune(nil, r) {
		n := escapedUnit(text[at:], unit)
		if n == 0 {
			return all
		}
		at += n
	}
	return append(all, at)
}

// escapedUnit is the length of the escape, \u and four digits, that a text begins with.
func escapedUnit(text string, unit uint16) int {
	slashes := len(text) - len(strings.TrimLeft(text, `\`))
	rest := text[slashes:]
	if slashes == 0 || len(rest) < 5 || rest[0] != 'u' {
		return 0
	}
	if v, err := strconv.ParseUint(rest[1:5], 16, 16); err != nil || uint16(v) != unit {
		return 0
	}
	return slashes + 5
}

// percent are the lengths of the percent-encodings of a character that a text begins
// with, which may have been encoded again.
func percent(text, char string) []int {
	if char == "%" {
		var all []int
		for n := len("%"); strings.HasPrefix(text[n:], "25"); {
			n += len("25")
			all = append(all, n)
		}
		return all
	}
	at := 0
	for i := range len(char) {
		rest, ok := strings.CutPrefix(text[at:], "%")
		for again := ok; again; {
			rest, again = strings.CutPrefix(rest, "25")
		}
		if !ok || len(rest) < 2 {
			return nil
		}
		if v, err := strconv.ParseUint(rest[:2], 16, 8); err != nil || byte(v) != char[i] {
			return nil
		}
		at = len(text) - len(rest) + 2
	}
	return []int{at}
}
