package sqlite

import "github.com/drover-run/drover/pkg/store"

// knownIDs answers most questions about ids without a statement: an id is new
// when it sorts after every id there is, which ids that are minted one after the
// other do, and a parent usually is the entry inserted last.
type knownIDs struct {
	greatest string // of entries and ledger rows, in byte order as SQLite compares
	last     string // an entry
}

const sqlGreatestID = `SELECT max(ifnull((SELECT max(id) FROM entries), ''), ifnull((SELECT max(id) FROM usage_ledger), ''))`

// load reads what an owner finds; nobody else adds ids from then on.
func (k *knownIDs) load(h *handle) error {
	_, err := h.row(sqlGreatestID, nil, &k.greatest)
	return err
}

// kind says what an id names, false when the store has to be asked.
func (k *knownIDs) kind(id string) (store.IDKind, bool) {
	switch {
	case id > k.greatest:
		return store.IDFree, true
	case id == k.last:
		return store.IDEntry, true
	}
	return store.IDFree, false
}

// add notes a committed record.
func (k *knownIDs) add(r *store.Record) {
	switch {
	case r.Entry != nil:
		k.greatest = max(k.greatest, r.Entry.ID)
		k.last = r.Entry.ID
	case r.Usage != nil:
		k.greatest = max(k.greatest, r.Usage.ID)
	}
}
