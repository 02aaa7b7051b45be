package export

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"
)

// codes are the short ids of one legacy file (D56): the first eight hexadecimal
// digits of the SHA-256 of an entry's id, hashed again while they are taken.
type codes struct {
	of    []uint32 // by entry
	taken map[uint32]struct{}
}

func newCodes(n int) codes {
	return codes{of: make([]uint32, n), taken: make(map[uint32]struct{}, n)}
}

func (c *codes) name(i int32, id string) { c.of[i] = c.claim(id) }

// fresh names a record that is no entry of the session.
func (c *codes) fresh(id, kind string, n int) uint32 {
	return c.claim(id + "/" + kind + "/" + strconv.Itoa(n))
}

func (c *codes) claim(id string) uint32 {
	sum := sha256.Sum256([]byte(id))
	for {
		code := binary.BigEndian.Uint32(sum[:])
		if _, taken := c.taken[code]; !taken {
			c.taken[code] = struct{}{}
			return code
		}
		sum = sha256.Sum256(sum[:])
	}
}

func appendCode(dst []byte, code uint32) []byte {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], code)
	return hex.AppendEncode(dst, b[:])
}

// quoteCode is a code as a JSON string.
func quoteCode(code uint32) string {
	return string(append(appendCode([]byte{'"'}, code), '"'))
}

// appendTime appends a time as the agent writes it.
func appendTime(dst []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}
