package store

import (
	"context"
	"iter"
)

// Loss is a part of a damaged store that could not be read or not be kept. Code
// and Where are like those of a Problem.
type Loss struct {
	Code    string
	Where   string
	Message string
	// EntryID names a lost entry of which its ParentID is still known.
	EntryID  string
	ParentID string
}

// Salvage is what can still be read of a damaged store. Whoever took it closes it.
type Salvage struct {
	// Header describes the session; of a lost one only Generation 0 and what the
	// records tell is left.
	Header Header
	// HeaderLost says why the header could not be read, "" when it could.
	HeaderLost string
	// Records gives the readable surviving records in the order of the store, and
	// tells what is not readable. They may break every invariant of spec §9.1. Each
	// call reads the store anew, with the same result.
	Records func(lost func(Loss)) iter.Seq2[Record, error]
	Close   func() error
}

// Salvager is implemented by drivers that can read around damage.
type Salvager interface {
	// Salvage opens a store for that, without owning or changing it. A store of
	// which nothing at all can be read is *Corrupt.
	Salvage(ctx context.Context, path string) (*Salvage, error)
}
