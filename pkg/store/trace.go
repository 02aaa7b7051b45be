package store

import (
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/telemetry"
)

// writeAttrs says how much a transaction writes and of which kinds, and nothing of
// what is in it (spec §5.8).
func writeAttrs(tx Tx) []telemetry.Attr {
	var kinds []string
	for _, w := range tx {
		if kind := w.Kind.name(); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return []telemetry.Attr{
		telemetry.Int("pi.session.item_count", int64(len(tx))),
		telemetry.String("pi.session.item_kinds", strings.Join(kinds, ",")),
	}
}

func (k WriteKind) name() string {
	switch k {
	case KindEntry:
		return "entry"
	case KindUsage:
		return "usage"
	case KindValue:
		return "value"
	}
	return "list"
}

func endWrite(span telemetry.Span, res CommitResult, err error) {
	if err == nil && len(res.Seqs) > 0 {
		span.Set(
			telemetry.Int("pi.session.first_seq", res.FirstSeq),
			telemetry.Int("pi.session.last_seq", res.Seqs[len(res.Seqs)-1]),
		)
	}
	span.End(err)
}
