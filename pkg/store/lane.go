package store

import (
	"context"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxLaneName is the longest name of a lane, in bytes.
const MaxLaneName = 128

// LaneBusy refuses an append: an operation owns the lane's leaf (spec §2.2).
type LaneBusy struct {
	Lane        string
	OperationID string
}

func (e *LaneBusy) Error() string {
	return fmt.Sprintf("lane %s is busy with operation %s", e.Lane, e.OperationID)
}

// UnknownLane names a lane that the session does not have. It is an ErrNotFound.
type UnknownLane struct{ Lane string }

func (e *UnknownLane) Error() string { return fmt.Sprintf("no lane %q", e.Lane) }

// Is makes the error an ErrNotFound.
func (e *UnknownLane) Is(target error) bool { return target == ErrNotFound }

// LaneExists refuses a lane name that is taken; lanes are permanent (spec §2.3).
type LaneExists struct{ Lane string }

func (e *LaneExists) Error() string { return fmt.Sprintf("lane %q exists already", e.Lane) }

// InvalidLane refuses a lane name.
type InvalidLane struct {
	Lane   string
	Reason string
}

func (e *InvalidLane) Error() string { return fmt.Sprintf("lane name %q %s", e.Lane, e.Reason) }

// UnknownTarget names an entry that should exist and does not. It is an
// ErrNotFound.
type UnknownTarget struct{ ID string }

func (e *UnknownTarget) Error() string { return fmt.Sprintf("no entry %q", e.ID) }

// Is makes the error an ErrNotFound.
func (e *UnknownTarget) Is(target error) bool { return target == ErrNotFound }

// CheckLane reports as *InvalidLane what makes a name no name for a lane: it is
// not empty, at most MaxLaneName bytes of UTF-8, and holds no control
// characters.
func CheckLane(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "is empty"
	case len(name) > MaxLaneName:
		reason = fmt.Sprintf("has %d bytes, more than %d", len(name), MaxLaneName)
	case !utf8.ValidString(name):
		reason = "is not UTF-8"
	default:
		for _, r := range name {
			if unicode.IsControl(r) {
				reason = fmt.Sprintf("holds the control character %U", r)
				break
			}
		}
	}
	if reason == "" {
		return nil
	}
	return &InvalidLane{Lane: name, Reason: reason}
}

// CreateLane makes a lane at an entry, "" for before the first one, and returns
// its view (spec §2.3). Nothing is copied from the entry's branch or from
// another lane. It fails with *InvalidLane, *LaneExists or *UnknownTarget.
func (s *Session) CreateLane(ctx context.Context, name, at string, cfg LaneConfiguration) (*Tree, error) {
	if err := CheckLane(name); err != nil {
		return nil, err
	}
	err := s.Mutate(ctx, name, func(m *Mutator) error {
		if _, taken, err := m.Value(ctx, LaneLeaf(name).Address()); err != nil {
			return err
		} else if taken {
			return &LaneExists{Lane: name}
		}
		if at != "" {
			if err := checkTarget(ctx, m, at); err != nil {
				return err
			}
		}
		_, err := m.Commit(laneTx(name, at, &cfg))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create lane: %w", err)
	}
	return s.View(name), nil
}

// laneTx writes the values of a new idle lane; only main may lack a
// configuration.
func laneTx(name, at string, cfg *LaneConfiguration) Tx {
	var tx Tx
	if cfg != nil {
		tx = append(tx, LaneConfig(name).Set(*cfg))
	}
	return append(tx, LaneLeaf(name).Set(LeafID(at)), LaneStateOf(name).Set(LaneState{}))
}

// Lanes returns the names of the session's lanes in byte order (spec §4.4).
func (s *Session) Lanes(ctx context.Context) ([]string, error) { return Lanes(ctx, s) }

// Lanes returns the names of the lanes that r knows, in byte order.
func Lanes(ctx context.Context, r interface {
	ScanValues(ctx context.Context, prefix Address) ([]StoredValue, error)
}) ([]string, error) {
	leaves, err := r.ScanValues(ctx, LaneLeaves().Address())
	if err != nil {
		return nil, err
	}
	names := make([]string, len(leaves))
	for i, leaf := range leaves {
		names[i] = leaf.Key
	}
	return names, nil
}
