package memory

import "github.com/drover-run/drover/pkg/store"

// Verdicts are those on the payloads of a State's entries and usage rows, each
// in the order of the records.
type Verdicts struct {
	entries, usage []bool                // which are sound
	calling        map[int]store.Verdict // on the sound entries that have to do with tool calls
}

// sound is the verdict on most records.
var sound = store.Verdict{Sound: true}

// Entry adds the verdict on the next entry.
func (v *Verdicts) Entry(x store.Verdict) {
	if x.Sound && (x.Answers || len(x.Calls) > 0) {
		if v.calling == nil {
			v.calling = make(map[int]store.Verdict)
		}
		v.calling[len(v.entries)] = x
	}
	v.entries = append(v.entries, x.Sound)
}

// Usage adds the verdict on the next usage row.
func (v *Verdicts) Usage(x store.Verdict) { v.usage = append(v.usage, x.Sound) }

// entry returns the verdict on a sound entry, nil on any other.
func (v *Verdicts) entry(i int) *store.Verdict {
	if !v.entries[i] {
		return nil
	}
	if _, ok := v.calling[i]; !ok {
		return &sound
	}
	x := v.calling[i] // declared here, as it moves to the heap where it is declared
	return &x
}

// row returns the verdict on a sound usage row, nil on any other.
func (v *Verdicts) row(i int) *store.Verdict {
	if !v.usage[i] {
		return nil
	}
	return &sound
}

// place is the Place of a judged snapshot: Replay has refused what it excludes.
func (s *State) place(id string) (n int, kind store.IDKind) {
	name, _, _ := s.ids.find(&s.history, id)
	switch {
	case name > 0:
		return int(name - 1), store.IDEntry
	case name < 0:
		return 0, store.IDUsage
	}
	return 0, store.IDFree
}

// Judged makes the State's snapshots judged. It is for a State that nobody reads
// yet, and to which nothing more will be added.
func (s *State) Judged(v *Verdicts) { s.verdicts = v }
