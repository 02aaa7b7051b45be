package cli

import "slices"

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

// edits is the Levenshtein distance of two words, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{change, row[j+1] + 1, row[j] + 1})
		}
	}
	return row[len(b)]
}
