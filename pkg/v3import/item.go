package v3import

import (
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// Status is what became of one file of a batch.
type Status string

// The statuses. Skipped means that the session is in the repository already.
const (
	StatusImported    Status = "imported"
	StatusSkipped     Status = "skipped"
	StatusFailed      Status = "failed"
	StatusWouldImport Status = "would-import"
)

// Item is the result of one file of a batch. Of a file that was not read, as one
// that is skipped, the counts are zero.
type Item struct {
	Source  string // the path as it was named
	Session string // the session's id, "" for a file that failed
	Status  Status
	Report
	Failure *Failure // of a file that failed
	Bytes   int64    // of the file
}

// AppendJSON appends the item as the import command reports it.
func (it Item) AppendJSON(dst []byte) ([]byte, error) {
	dst = rawjson.AppendQuote(append(dst, `{"source":`...), it.Source)
	dst = append(dst, `,"session":`...)
	if it.Session == "" {
		dst = append(dst, "null"...)
	} else {
		dst = rawjson.AppendQuote(dst, it.Session)
	}
	dst = rawjson.AppendQuote(append(dst, `,"status":`...), string(it.Status))
	dst = rawjson.AppendInt(append(dst, `,"entries":`...), it.Entries)
	dst = rawjson.AppendInt(append(dst, `,"discarded":`...), it.Discarded)
	dst = rawjson.AppendInt(append(dst, `,"messages":`...), it.Messages)
	dst = append(dst, `,"kinds":{`...)
	for i, k := range it.Kinds {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendQuote(dst, k.Type), ':')
		dst = rawjson.AppendInt(dst, k.Count)
	}
	dst, err := it.Usage.AppendJSON(append(dst, `},"usage":`...))
	if err != nil {
		// A sum that is no number any more: what JSON cannot write is not reported.
		dst, _ = message.Usage{}.AppendJSON(dst)
	}
	dst = append(dst, `,"warnings":[`...)
	for i, w := range it.Warnings {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPlace(append(dst, '{'), w.Line, w.Offset)
		dst = append(appendReason(append(dst, ','), w.Code, w.Message), '}')
	}
	dst = append(dst, `],"error":`...)
	if it.Failure == nil {
		return append(dst, `null}`...), nil
	}
	f := it.Failure
	dst = append(appendReason(append(dst, '{'), f.Code, f.Message), ',')
	return append(appendPlace(dst, f.Line, f.Offset), "}}"...), nil
}

// MarshalJSON is AppendJSON.
func (it Item) MarshalJSON() ([]byte, error) { return it.AppendJSON(nil) }

func appendReason(dst []byte, code, msg string) []byte {
	dst = rawjson.AppendQuote(append(dst, `"code":`...), code)
	return rawjson.AppendQuote(append(dst, `,"message":`...), msg)
}

func appendPlace(dst []byte, line, offset int64) []byte {
	dst = rawjson.AppendInt(append(dst, `"line":`...), line)
	return rawjson.AppendInt(append(dst, `,"offset":`...), offset)
}

// Totals sum a batch. Bytes are those of the files that were imported, or would
// be.
type Totals struct {
	Files          int     `json:"files"`
	Imported       int     `json:"imported"`
	Skipped        int     `json:"skipped"`
	Failed         int     `json:"failed"`
	Entries        int64   `json:"entries"`
	Bytes          int64   `json:"bytes"`
	Seconds        float64 `json:"seconds"`
	BytesPerSecond float64 `json:"bytesPerSecond"`
}

func (t *Totals) add(it Item) {
	t.Files++
	switch it.Status {
	case StatusImported:
		t.Imported++
	case StatusSkipped:
		t.Skipped++
	case StatusFailed:
		t.Failed++
	}
	if it.Status == StatusImported || it.Status == StatusWouldImport {
		t.Entries += it.Entries
		t.Bytes += it.Bytes
	}
}
