package sqlite

import (
	"encoding/json"

	"github.com/drover-run/drover/pkg/store"
)

const (
	sqlVersion = `SELECT storage_version FROM session`
	sqlSession = `SELECT metadata, next_seq, newest_timestamp FROM session`
)

// generationVersion is the storage version from which the session row has the
// header's generation, where others can read it without parsing the metadata.
const generationVersion = 2

// sessionRow is the catalog row: what the session is and how far it has come.
type sessionRow struct {
	header  store.Header
	nextSeq int64
	newest  int64 // newest timestamp given, Unix ms
}

// session reads and judges the catalog row. The version comes first: of a newer
// one nothing else is understood (spec §7.3).
func (h *handle) session() (sessionRow, error) {
	var s sessionRow
	var version int64
	ok, err := h.row(sqlVersion, nil, &version)
	switch {
	case err != nil:
		return s, err
	case !ok:
		return s, corrupt(h.path, "session row is missing")
	case version > store.StorageVersion:
		return s, &store.NewerVersion{Path: h.path, Found: version, Supported: store.StorageVersion}
	}
	var metadata json.RawMessage
	if _, err := h.row(sqlSession, nil, (*[]byte)(&metadata), &s.nextSeq, &s.newest); err != nil {
		return s, err
	}
	if s.header, err = store.ParseHeader(metadata); err != nil {
		return s, corrupt(h.path, "%v", err)
	}
	if s.header.StorageVersion != version {
		return s, corrupt(h.path, "storage version is %d in the session row and %d in its metadata", version, s.header.StorageVersion)
	}
	return s, nil
}
