package store

import (
	"context"
	"fmt"
)

// KindTaken refuses a value where a list is, or a list where a value is: an
// address has one kind (spec §1.3).
type KindTaken struct {
	Address Address
	Kind    WriteKind // of what is there
}

func (e *KindTaken) Error() string {
	return fmt.Sprintf("%s is a %s, and an address has one kind", e.Address, e.KindName())
}

// KindName says what is there: value or list.
func (e *KindTaken) KindName() string { return kindName(e.Kind) }

// cell is what one address holds of one kind.
type cell struct {
	address Address
	kind    WriteKind
}

// checkKinds refuses a transaction that would give an application's address two
// kinds. Built-in addresses have theirs by construction, so that the engine's own
// commits look nothing up.
func checkKinds(ctx context.Context, q Queries, tx Tx) error {
	var changed map[cell]bool // what earlier writes of the transaction leave
	for i := range tx {
		w := &tx[i]
		if w.Kind != KindValue && w.Kind != KindList || w.Address.Reserved() || w.Address.Check() != nil {
			continue
		}
		if changed == nil {
			changed = make(map[cell]bool)
		}
		changed[cell{w.Address, w.Kind}] = w.Op != OpDelete
		if w.Op == OpDelete {
			continue
		}
		other := cell{w.Address, KindValue + KindList - w.Kind}
		taken, known := changed[other]
		if !known {
			var err error
			if taken, err = holds(ctx, q, other); err != nil {
				return err
			}
		}
		if taken {
			return &InvalidWrite{Index: i, Err: &KindTaken{Address: w.Address, Kind: other.kind}}
		}
	}
	return nil
}

func holds(ctx context.Context, q Queries, c cell) (bool, error) {
	if c.kind == KindValue {
		_, ok, err := q.Value(ctx, c.address)
		return ok, err
	}
	elements, err := q.ReadList(ctx, c.address, ListQuery{Limit: 1})
	return len(elements) > 0, err
}
