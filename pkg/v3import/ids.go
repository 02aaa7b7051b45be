package v3import

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/drover-run/drover/pkg/store"
)

// minter gives the UUIDv7s of one session. Without a source they are derived
// from a seed and a number, so that the same file gives the same ids.
type minter struct {
	source store.IDSource
	seed   string
}

func (m minter) at(ms int64, n int64) string {
	if m.source != nil {
		return m.source.At(ms)
	}
	buf := make([]byte, 0, 160)
	buf = append(buf, m.seed...)
	buf = binary.BigEndian.AppendUint64(append(buf, 0), uint64(n))
	sum := sha256.Sum256(buf)
	return uuidv7(ms, sum[:10])
}

// uuidv7 writes a UUIDv7 of the given time with a given tail of ten bytes.
func uuidv7(ms int64, tail []byte) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16)
	copy(id[6:], tail)
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	out := make([]byte, 36)
	hex.Encode(out, id[:4])
	out[8] = '-'
	hex.Encode(out[9:], id[4:6])
	out[13] = '-'
	hex.Encode(out[14:], id[6:8])
	out[18] = '-'
	hex.Encode(out[19:], id[8:10])
	out[23] = '-'
	hex.Encode(out[24:], id[10:])
	return string(out)
}

// freshSessionID is the id of a session whose header id is not kept. It follows
// from the header id and the content, so that importing the file again, or in
// another process at the same time, meets the same session.
func freshSessionID(headerID, digest string, created int64) string {
	sum := sha256.Sum256([]byte(headerID + "\x00" + digest))
	return uuidv7(max(created, 0), sum[:10])
}
