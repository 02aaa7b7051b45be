package search

import (
	"strconv"
	"strings"
	"unicode"
)

// SyntaxError is a query that cannot be understood.
type SyntaxError struct{ Msg string }

func (e *SyntaxError) Error() string { return e.Msg }

// CheckQuery tells, without an index, whether a query can be understood: what it
// finds is a *SyntaxError. Inside NEAR( ) only an index can tell.
func CheckQuery(query string) error {
	_, err := compile(query)
	return err
}

// compile makes an FTS5 expression of what a person typed: words that all have to
// occur, "phrases", AND, OR, NOT, parentheses, word* for a beginning, ^word for the
// first word of a text, NEAR(word word, 5). A word may have any characters that are
// none of these; it is looked for as the words that the index splits it into. It
// fails with *SyntaxError.
func compile(query string) (string, error) {
	q := queryParser{rest: query}
	for q.skipSpace(); q.rest != ""; q.skipSpace() {
		if err := q.token(); err != nil {
			return "", err
		}
	}
	switch {
	case q.open > 0:
		return "", &SyntaxError{"a parenthesis is not closed"}
	case q.out.Len() == 0:
		return "", &SyntaxError{"there is no word to look for"}
	case q.wants:
		return "", &SyntaxError{"there is no word after " + q.operator}
	}
	return q.out.String(), nil
}

type queryParser struct {
	rest     string
	out      strings.Builder
	open     int    // parentheses
	operand  bool   // the last one was an operand: AND may follow
	wants    bool   // the last one was an operator or a parenthesis
	operator string // the last one
}

func (q *queryParser) skipSpace() { q.rest = strings.TrimLeftFunc(q.rest, unicode.IsSpace) }

func (q *queryParser) token() error {
	switch q.rest[0] {
	case '"':
		return q.phrase()
	case '(':
		q.rest = q.rest[1:]
		q.operate("(")
		q.open++
		return nil
	case ')':
		q.rest = q.rest[1:]
		return q.close()
	}
	if end, ok := nearGroup(q.rest); ok {
		return q.near(end)
	}
	end := strings.IndexFunc(q.rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"()`, r) })
	if end < 0 {
		end = len(q.rest)
	}
	word := q.rest[:end]
	q.rest = q.rest[end:]
	switch word {
	case "AND", "OR", "NOT":
		if !q.operand {
			return &SyntaxError{"there is no word before " + word}
		}
		q.operate(word)
		return nil
	}
	q.word(word)
	return nil
}

// nearGroup finds the end of a group that stands at the beginning of s.
func nearGroup(s string) (end int, ok bool) {
	if !strings.HasPrefix(s, "NEAR(") {
		return 0, false
	}
	end = strings.IndexByte(s, ')')
	return end + 1, end > 0
}

// near takes a group as it is; what is wrong between its words FTS5 tells.
func (q *queryParser) near(end int) error {
	group := q.rest[:end]
	if comma := strings.LastIndexByte(group, ','); comma >= 0 {
		distance := strings.TrimSpace(group[comma+1 : end-1])
		if _, err := strconv.ParseUint(distance, 10, 31); err != nil {
			return &SyntaxError{"NEAR(word word, 5) takes a number after the comma"}
		}
	}
	q.put(group)
	q.rest = q.rest[end:]
	return nil
}

// put adds an operand. All of them have to occur unless an operator says otherwise;
// FTS5 itself does not say so of parentheses.
func (q *queryParser) put(operand string) {
	if q.operand {
		q.out.WriteString(" AND ")
	}
	q.out.WriteString(operand)
	q.operand, q.wants = true, false
}

func (q *queryParser) operate(operator string) {
	if operator == "(" && q.operand {
		q.out.WriteString(" AND ")
	}
	q.out.WriteString(" " + operator + " ")
	q.operand, q.wants, q.operator = false, true, operator
}

func (q *queryParser) close() error {
	switch {
	case q.open == 0:
		return &SyntaxError{"a parenthesis is closed that was not opened"}
	case q.wants:
		return &SyntaxError{"there is no word after " + q.operator}
	}
	q.open--
	q.out.WriteString(" ) ")
	q.operand = true
	return nil
}

// phrase takes a text in quotes; two of them stand for one.
func (q *queryParser) phrase() error {
	end := 1
	for {
		i := strings.IndexByte(q.rest[end:], '"')
		if i < 0 {
			return &SyntaxError{"a quotation is not closed"}
		}
		end += i + 1
		if end == len(q.rest) || q.rest[end] != '"' {
			break
		}
		end++
	}
	text := strings.ReplaceAll(q.rest[1:end-1], `""`, `"`)
	q.rest = q.rest[end:]
	prefix := strings.HasPrefix(q.rest, "*")
	if prefix {
		q.rest = q.rest[1:]
	}
	if hasWord(text) {
		q.put(quote(text, prefix))
	}
	return nil
}

// word adds a word. One without a letter or a digit is nothing that the index knows,
// as punctuation between words is not.
func (q *queryParser) word(word string) {
	text, prefix := strings.CutSuffix(word, "*")
	text, first := strings.CutPrefix(text, "^")
	if !hasWord(text) {
		return
	}
	operand := quote(text, prefix)
	if first {
		operand = "^ " + operand
	}
	q.put(operand)
}

// hasWord tells whether the index would find a word in the text: what unicode61
// takes for a part of one.
func hasWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r)
	})
}

func quote(text string, prefix bool) string {
	quoted := `"` + strings.ReplaceAll(indexable(text), `"`, `""`) + `"`
	if prefix {
		quoted += "*"
	}
	return quoted
}
