package store

import "fmt"

// NewSnapshot gives records that are already numbered, in rising order, as the
// snapshot of one session. The high-water mark is the header's, or the number
// after the last record when that is higher.
func NewSnapshot(h Header, records []Record) *Snapshot {
	next := max(h.NextSeq, 1)
	if n := len(records); n > 0 {
		next = max(next, records[n-1].Seq+1)
	}
	return &Snapshot{
		Header:  h,
		NextSeq: next,
		Records: func(yield func(Record, error) bool) {
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
		},
		Close: func() error { return nil },
	}
}

// Collect reads a whole snapshot into memory and closes it.
func Collect(s *Snapshot) ([]Record, error) {
	var records []Record
	for r, err := range s.Records {
		if err != nil {
			_ = s.Close()
			return nil, fmt.Errorf("read snapshot: %w", err)
		}
		records = append(records, r)
	}
	if err := s.Close(); err != nil {
		return nil, fmt.Errorf("close snapshot: %w", err)
	}
	return records, nil
}
