// Package secret takes keys out of texts that people read: error messages, traces.
//
// A server, or a proxy before it, repeats a key in the spelling of its own answer.
// So a key is found as it is, percent-encoded, escaped as in a JSON string (also of
// one within another), escaped as in HTML, character by character in any mixture,
// and in base64, alone or behind a name.
//
// Import law: secret imports nothing of ours.
package secret

import (
	"encoding/base64"
	"slices"
	"strings"
)

const (
	// Redacted stands in for a secret.
	Redacted = "[redacted]"
	// Shortest is the length in bytes from which a text is a secret. What is shorter
	// would be guessed anyway; local servers take any word for a key, and to take each
	// "x" out of a text would make it unreadable, and tell the key.
	Shortest = 8
	// tells is how many characters of a secret say something of it.
	tells = 4
	// escapes are the bytes that spellings other than the plain one begin with.
	escapes = `\%&+`
)

// Set is a set of secrets. The zero value is empty.
type Set struct {
	texts  []string
	begins [256]bool // the bytes that a spelling of one of them begins with
}

// Add adds a secret, unless it is shorter than Shortest.
func (s *Set) Add(text string) {
	if len(text) < Shortest || slices.Contains(s.texts, text) {
		return
	}
	s.add(text)
	for _, encoded := range encodings(text) {
		s.add(encoded)
	}
}

func (s *Set) add(text string) {
	s.texts = append(s.texts, text)
	s.begins[text[0]] = true
	for _, b := range []byte(escapes) {
		s.begins[b] = true
	}
}

// AddHeader adds the value of a request's header that may carry a credential, which
// may name a scheme first: `Bearer KEY`, or `Basic BASE64` with its password. Of
// headers that are known to carry none, nor a short value of one whose name says
// nothing of a key, nothing is added.
func (s *Set) AddHeader(name, value string) {
	if Open(name) || !Named(name) && len(value) < likely {
		return
	}
	s.Add(value)
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return
	}
	rest = strings.TrimSpace(rest)
	s.Add(rest)
	if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
		if _, password, ok := strings.Cut(string(plain), ":"); ok {
			s.Add(password)
		}
	}
}

// encodings are what base64 makes of a text wherever it stands in another one, but
// for the characters that its neighbours have a part in.
func encodings(text string) []string {
	var all []string
	for before := range 3 {
		padded := []byte(strings.Repeat("\x00", before) + text)
		shared := (before*8 + 5) / 6 // characters with bits of what stands before
		whole := len(padded) * 8 / 6 // characters without bits of what follows
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if encoded := e.EncodeToString(padded)[shared:whole]; len(encoded) >= Shortest && !slices.Contains(all, encoded) {
				all = append(all, encoded)
			}
		}
	}
	return all
}

// Out returns the text with each secret replaced.
func (s *Set) Out(text string) string {
	var out strings.Builder
	kept := 0
	for at := 0; at < len(text); {
		n := s.longest(text[at:])
		if n == 0 {
			at++
			continue
		}
		out.WriteString(text[kept:at])
		out.WriteString(Redacted)
		at += n
		kept = at
	}
	if kept == 0 {
		return text
	}
	out.WriteString(text[kept:])
	return out.String()
}

// OutCut is Out for a text that was cut off where it ends in mark: the beginning of a
// secret there is replaced, too.
func (s *Set) OutCut(text, mark string) string {
	text = s.Out(text)
	body, cut := strings.CutSuffix(text, mark)
	if !cut {
		return text
	}
	for at := range len(body) {
		if s.beginsWith(body[at:]) {
			return body[:at] + Redacted + mark
		}
	}
	return text
}

// longest is the length of the longest secret that a text begins with, 0 for none.
func (s *Set) longest(text string) int {
	if !s.begins[text[0]] {
		return 0
	}
	most := 0
	for _, secret := range s.texts {
		if text[0] == secret[0] || strings.IndexByte(escapes, text[0]) >= 0 {
			n, _ := follow(text, secret)
			most = max(most, n)
		}
	}
	return most
}

// beginsWith reports a text that is the beginning of a secret.
func (s *Set) beginsWith(text string) bool {
	return s.begins[text[0]] && slices.ContainsFunc(s.texts, func(secret string) bool {
		_, cut := follow(text, secret)
		return cut
	})
}
