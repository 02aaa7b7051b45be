package cli

import (
	"slices"
	"strings"
)

// nearest returns the name that is the fewest edits away, the first of equals.
func nearest(word string, names []string) string {
	best, distance := "", -1
	for _, name := range names {
		if d := edits(word, name); distance < 0 || d < distance {
			best, distance = name, d
		}
	}
	return best
}

// minPart is the shortest word that is taken for a part of a name.
const minPart = 3

// meant returns the name that a word most likely stands for: one that begins with it,
// one that holds it, or one of which it is a slip. "" when no name is like it.
func meant(word string, names []string) string {
	if len(word) >= minPart {
		for _, part := range []func(name, word string) bool{strings.HasPrefix, strings.Contains} {
			var fitting []string
			for _, name := range names {
				if part(name, word) {
					fitting = append(fitting, name)
				}
			}
			if len(fitting) > 0 {
				return nearest(word, fitting)
			}
		}
	}
	best := nearest(word, names)
	if edits(word, best) > max(len(word), len(best))/3 {
		return ""
	}
	return best
}

// edits is the number of bytes to insert, delete, change, or swap with their
// neighbour, between two words.
func edits(a, b string) int {
	var before []int // the row above the one above
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = slices.Min([]int{change, row[j+1] + 1, next[j] + 1})
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
