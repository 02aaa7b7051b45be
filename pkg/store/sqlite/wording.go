package sqlite

import (
	"fmt"
	"strings"

	lib "modernc.org/sqlite/lib"
)

// inWords says what is wrong with a database that SQLite refuses. Its own words
// stay only where they name something, such as a table that is missing.
func inWords(code int, err error) string {
	switch code & 0xff {
	case lib.SQLITE_CORRUPT:
		return "the database's pages are damaged"
	case lib.SQLITE_NOTADB, lib.SQLITE_FORMAT:
		return "the file is no SQLite database"
	}
	words := strings.TrimPrefix(err.Error(), "SQL logic error: ")
	words = strings.TrimSuffix(words, fmt.Sprintf(" (%d)", code))
	return "the database is not as a session's should be: " + words
}

// finding is one line of an integrity check: what is damaged, and how.
type finding struct{ where, said string }

// structural reads what SQLite's integrity check says in one row: its heading
// and several lines, written for those who know its source.
func structural(text string) []finding {
	var all []finding
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "***") {
			continue
		}
		f := finding{said: "the database's structure is damaged: " + line}
		page, onPage := after(line, "page ")
		beyond, missing := after(line, "invalid page number ")
		index, ofIndex := after(line, "index ")
		switch {
		case missing:
			f.where = "page " + beyond
		case onPage:
			f.where = "page " + page
		case ofIndex:
			f.where = "index " + index
		}
		switch {
		case missing:
			f.said = "the database's structure is damaged: the file has no such page"
		case onPage && strings.Contains(line, "error code"):
			f.said = "the page cannot be read"
		case ofIndex && strings.HasPrefix(line, "wrong # of entries"):
			f.said = "the index does not have an entry for every row"
		}
		all = append(all, f)
	}
	return all
}

// after returns the word that follows a lower-case text.
func after(line, text string) (string, bool) {
	i := strings.Index(strings.ToLower(line), text)
	if i < 0 {
		return "", false
	}
	word, _, _ := strings.Cut(line[i+len(text):], " ")
	word = strings.TrimRight(word, ":")
	return word, word != ""
}
