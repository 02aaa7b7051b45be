package cli

import (
	"fmt"
	"time"
)

// instant is a time for a pipe or an error: RFC 3339 in UTC, to the second.
func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// ago is a time for a person: how long before now it was, a date when that says
// more.
func ago(ms, now int64) string {
	d := time.Duration(now-ms) * time.Millisecond
	switch {
	case d < -time.Minute:
		return instant(ms)
	case d < 5*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	case d < 30*24*time.Hour:
		return fmt.Sprintf("%dd ago", d/(24*time.Hour))
	}
	return time.UnixMilli(ms).UTC().Format(time.DateOnly)
}

// parseWhen reads a time argument: a Go duration, counted from now by sign, or
// an RFC 3339 instant. The result is Unix ms.
func parseWhen(flag, s string, now, sign int64) (int64, error) {
	if d, err := time.ParseDuration(s); err == nil {
		if d < 0 {
			return 0, usagef("%s %s: a duration must not be negative", flag, s)
		}
		return now + sign*d.Milliseconds(), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, usagef("%s %q is neither a duration such as 90s nor an instant such as 2026-01-02T15:04:05Z", flag, escapeLine(s))
	}
	return t.UnixMilli(), nil
}

// parseDuration reads a Go duration that is not negative.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("want a duration such as 30s")
	}
	return d, nil
}
