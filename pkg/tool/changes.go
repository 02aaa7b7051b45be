package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// edited is the outcome of changes.
type edited struct {
	content       string // the whole file
	before, after string // its text with line feeds only, for people
}

// span is where a change applies in the text with line feeds.
type span struct {
	change     int
	start, end int
}

// applyChanges replaces the old text of each change by its new one. Each must
// occur exactly once and none may overlap another. A byte order mark and every
// line end outside the changes stay as they are; line ends within are written
// as those they replace, or as most of the file's.
func applyChanges(content string, changes []change) (edited, error) {
	text, bom := strings.CutPrefix(content, utf8BOM)
	prefix := ""
	if bom {
		prefix = utf8BOM
	}
	plain := lineFeeds(text)
	spans, err := locate(plain, changes)
	if err != nil {
		return edited{}, err
	}
	returns := carriageReturns(text)
	var out, after strings.Builder
	out.WriteString(prefix)
	at := 0
	for _, s := range spans {
		start, end := returns.original(s.start), returns.original(s.end)
		out.WriteString(text[returns.original(at):start])
		out.WriteString(returns.lineEnds(changes[s.change].new, text, start, end))
		after.WriteString(plain[at:s.start])
		after.WriteString(changes[s.change].new)
		at = s.end
	}
	out.WriteString(text[returns.original(at):])
	after.WriteString(plain[at:])
	if out.String() == content {
		return edited{}, errors.New("the edits change nothing")
	}
	return edited{content: out.String(), before: plain, after: after.String()}, nil
}

// locate finds the places of all changes, in the order of the text.
func locate(text string, changes []change) ([]span, error) {
	var spans []span
	for i, c := range changes {
		if c.old == "" {
			return nil, fmt.Errorf("edit %d: oldText is empty", i+1)
		}
		start := strings.Index(text, c.old)
		if start < 0 {
			return nil, fmt.Errorf("edit %d: oldText does not occur in the file: %s", i+1, clip(fmt.Sprintf("%q", c.old), 120))
		}
		// The next one may start within the first: aa occurs twice in aaa.
		if next := strings.Index(text[start+1:], c.old); next >= 0 {
			return nil, fmt.Errorf("edit %d: oldText occurs more than once, on lines %d and %d at least; give more of what surrounds it",
				i+1, lineOf(text, start), lineOf(text, start+1+next))
		}
		spans = append(spans, span{change: i, start: start, end: start + len(c.old)})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(spans); i++ {
		if a, b := spans[i-1], spans[i]; b.start < a.end {
			first, second := min(a.change, b.change)+1, max(a.change, b.change)+1
			return nil, fmt.Errorf("edits %d and %d overlap on line %d; make them one", first, second, lineOf(text, b.start))
		}
	}
	return spans, nil
}

func lineOf(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }

// crs are the places, in the text with line feeds, of the line ends that have a
// carriage return in the original.
type crs struct {
	at       []int
	majority bool // of all line ends
}

func carriageReturns(text string) crs {
	var c crs
	for i, n := 0, len(text); i < n; {
		next := strings.Index(text[i:], "\r\n")
		if next < 0 {
			break
		}
		i += next
		c.at = append(c.at, i-len(c.at))
		i += len("\r\n")
	}
	c.majority = 2*len(c.at) > strings.Count(text, "\n")
	return c
}

// original maps a place in the text with line feeds to the original: in front of
// a line end means in front of its carriage return.
func (c crs) original(at int) int { return at + sort.SearchInts(c.at, at) }

// lineEnds writes new text with the line ends of text[start:end], which it
// replaces.
func (c crs) lineEnds(new, text string, start, end int) string {
	returns := c.majority
	if i := strings.IndexByte(text[start:end], '\n'); i >= 0 {
		returns = i > 0 && text[start+i-1] == '\r'
	}
	if !returns {
		return new
	}
	return strings.ReplaceAll(new, "\n", "\r\n")
}

// unifiedDiff shows a change for people and programs that read patches.
func unifiedDiff(name, before, after string) string {
	before, after = validText(before), validText(after)
	diff, err := udiff.ToUnified(name, name, before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return "" // edits that Lines made fit the text they were made from
	}
	return diff
}
