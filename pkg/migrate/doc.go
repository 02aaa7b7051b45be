// Package migrate takes sessions of older storage versions to the current one
// (spec Part 7).
//
// A migration is a pure function over what is stored: values and list elements of
// the namespaces whose shape changed. It is total, so that an operation that was
// open under the old version goes on under the new one from wherever it stood, and
// idempotent. Entries and ledger rows are never rewritten, and what no version knew
// passes through untouched. Where and when the steps run is the store's business:
// in memory for a reader, in one transaction or one new file for an owner.
//
// The shapes of an old version are frozen here. Today's types say nothing about
// yesterday's bytes.
//
// Import law: migrate may import store and internal/rawjson.
package migrate

import (
	"encoding/json"

	"github.com/drover-run/drover/pkg/store"
)

// Chain returns one migration for each storage version after the first, in order.
func Chain() store.Migrations {
	return store.Migrations{
		{
			To:   2,
			Name: "runs keep their stream options, tool calls count their starts",
			Convert: map[string]store.Conversion{
				"pi.op.state": func(_ string, stored json.RawMessage) (json.RawMessage, error) { return stateTo2(stored) },
			},
		},
	}
}
