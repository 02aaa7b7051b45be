package model

import (
	"cmp"
	"slices"

	"github.com/drover-run/drover/pkg/message"
)

// maxNearest is how many names an unknown reference is answered with.
const maxNearest = 3

// Distances up to which a name was most likely mistyped: that of a provider, that of a
// model at the provider that was named, and that of a model at another one.
const (
	slip      = 0.34
	halfRight = 0.5
	elsewhere = 0.15
)

// nearest returns the listed models that ref most likely stands for, and the model
// itself at a provider that lists none, best first; none when ref is itself listed, so
// that its spelling is not what is wrong. Provider and model are compared each by itself
// and in proportion to its length: a long model id, a path perhaps, must not drown a
// slip in the provider's name.
func (r *Registry) nearest(ref message.ModelRef) []string {
	type candidate struct {
		name string
		far  float64
	}
	var all []candidate
	for name, p := range r.providers {
		far := distance(ref.Provider, name)
		listed := p.Models()
		if len(listed) == 0 && name != ref.Provider && far <= slip {
			// It has whatever model it is asked for, as far as is known here.
			all = append(all, candidate{message.ModelRef{Provider: name, ModelID: ref.ModelID}.String(), far})
		}
		for _, id := range listed {
			known := message.ModelRef{Provider: name, ModelID: id}
			if known == ref {
				return nil
			}
			if model := distance(ref.ModelID, id); likely(far, model) {
				all = append(all, candidate{known.String(), far + model})
			}
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range all[:min(maxNearest, len(all))] {
		names = append(names, c.name)
	}
	return names
}

// likely reports whether a reference may have been meant to be a model, from the
// distances of provider and model. Any model of a provider that was mistyped may: which
// it has is what whoever asks for it may not know.
func likely(provider, model float64) bool {
	switch {
	case provider == 0:
		return model <= halfRight
	case provider <= slip:
		return true
	}
	return model <= elsewhere
}

// distance is the edit distance of two names as a share of the longer one's
// length: 0 for equal names, 1 for names with nothing in common.
func distance(a, b string) float64 {
	x, y := []rune(a), []rune(b)
	if len(x) == 0 && len(y) == 0 {
		return 0
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			change := diagonal
			if x[i] != y[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return float64(row[len(y)]) / float64(max(len(x), len(y)))
}
