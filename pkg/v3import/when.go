package v3import

import (
	"strconv"
	"time"
)

// maxTime is the first time that a UUIDv7 cannot carry, Unix ms.
const maxTime = 1 << 48

// noTime marks a record without a usable time of its own.
const noTime = -1

// parseTime reads a record's timestamp: ISO 8601 text as the agent writes it,
// or what other writers make of it. Times outside the range of an id are none.
func parseTime(s string) (int64, bool) {
	if ms, ok := parsePlainTime(s); ok {
		return ms, inRange(ms)
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00",
		"2006-01-02 15:04:05", "2006-01-02",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UnixMilli(), inRange(t.UnixMilli())
		}
	}
	return noTime, false
}

func inRange(ms int64) bool { return ms >= 0 && ms < maxTime }

// parsePlainTime reads 2006-01-02T15:04:05.000Z, with or without milliseconds,
// which nearly every timestamp is.
func parsePlainTime(s string) (int64, bool) {
	if len(s) != 20 && len(s) != 24 {
		return 0, false
	}
	const shape = "dddd-dd-ddTdd:dd:dd.dddZ"
	var n [7]int
	field := 0
	for i := range len(s) - 1 {
		c := s[i]
		if shape[i] != 'd' {
			if c != shape[i] {
				return 0, false
			}
			field++
			continue
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		n[field] = n[field]*10 + int(c-'0')
	}
	if s[len(s)-1] != 'Z' {
		return 0, false
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*int(time.Millisecond), time.UTC)
	// time.Date normalizes what is no date; such text is none.
	if t.Month() != time.Month(n[1]) || t.Day() != n[2] || n[3] > 23 || n[4] > 59 || n[5] > 59 {
		return 0, false
	}
	return t.UnixMilli(), true
}

// parseMillis reads a number of Unix ms.
func parseMillis(raw []byte) (int64, bool) {
	if len(raw) == 0 || (raw[0] != '-' && raw[0]-'0' > 9) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f >= maxTime {
		return 0, false
	}
	return int64(f), true
}
