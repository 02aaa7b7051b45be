package op

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// Preparation is what a summary is made from, computed once and durable until
// its operation ends (spec §1.3, §3.2). The fields beyond Kind and Files belong
// to their kind.
type Preparation struct {
	Kind  SummaryKind
	Files FileOps

	// Compaction.
	Summarize       []message.Message // history before the kept part
	TurnPrefix      []message.Message // the beginning of a split turn
	RetainedTail    []message.Message
	SplitTurn       bool
	TokensBefore    int64
	PreviousSummary *string
	Settings        CompactionSettings

	// Branch summary.
	Messages    []message.Message
	TotalTokens int64
}

// FileOps are the paths that summarized tool calls named, sorted and unique.
type FileOps struct {
	Read    []string `json:"read"`
	Written []string `json:"written"`
	Edited  []string `json:"edited"`
}

func (f FileOps) sorted() FileOps {
	for _, list := range []*[]string{&f.Read, &f.Written, &f.Edited} {
		slices.Sort(*list)
		*list = nonNil(slices.Compact(*list))
	}
	return f
}

// Lists are the files of a finished summary: a modified file is not also listed
// as read.
func (f FileOps) Lists() (read, modified []string) {
	modified = slices.Concat(f.Written, f.Edited)
	slices.Sort(modified)
	modified = nonNil(slices.Compact(modified))
	read = []string{}
	for _, path := range f.Read {
		if !slices.Contains(modified, path) {
			read = append(read, path)
		}
	}
	return read, modified
}

// AppendJSON writes the durable form; messages are spliced as they are.
func (p Preparation) AppendJSON(dst []byte) ([]byte, error) {
	files, err := marshal(p.Files)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `{"kind":`...)
	dst = rawjson.AppendQuote(dst, string(p.Kind))
	if p.Kind == SummaryBranch {
		dst = appendMessages(append(dst, `,"messages":`...), p.Messages)
		dst = append(append(dst, `,"fileOps":`...), files...)
		dst = append(dst, `,"totalTokens":`...)
		return append(rawjson.AppendInt(dst, p.TotalTokens), '}'), nil
	}
	settings, err := marshal(p.Settings)
	if err != nil {
		return nil, err
	}
	dst = appendMessages(append(dst, `,"messagesToSummarize":`...), p.Summarize)
	dst = appendMessages(append(dst, `,"turnPrefixMessages":`...), p.TurnPrefix)
	dst = appendMessages(append(dst, `,"retainedTail":`...), p.RetainedTail)
	dst = fmt.Appendf(dst, `,"isSplitTurn":%t,"tokensBefore":%d`, p.SplitTurn, p.TokensBefore)
	if p.PreviousSummary != nil {
		dst = append(dst, `,"previousSummary":`...)
		dst = rawjson.AppendQuote(dst, *p.PreviousSummary)
	}
	dst = append(append(dst, `,"fileOps":`...), files...)
	return append(append(append(dst, `,"settings":`...), settings...), '}'), nil
}

func appendMessages(dst []byte, messages []message.Message) []byte {
	dst = append(dst, '[')
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m...)
	}
	return append(dst, ']')
}

// Tail is the retained tail as a compaction entry stores it.
func (p Preparation) Tail() json.RawMessage { return appendMessages(nil, p.RetainedTail) }

// DecodePreparation reads what AppendJSON wrote.
func DecodePreparation(raw json.RawMessage) (Preparation, error) {
	var w struct {
		Kind                SummaryKind        `json:"kind"`
		FileOps             FileOps            `json:"fileOps"`
		MessagesToSummarize []message.Message  `json:"messagesToSummarize"`
		TurnPrefixMessages  []message.Message  `json:"turnPrefixMessages"`
		RetainedTail        []message.Message  `json:"retainedTail"`
		IsSplitTurn         bool               `json:"isSplitTurn"`
		TokensBefore        int64              `json:"tokensBefore"`
		Settings            CompactionSettings `json:"settings"`
		Messages            []message.Message  `json:"messages"`
		TotalTokens         int64              `json:"totalTokens"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return Preparation{}, err
	}
	if w.Kind != SummaryCompaction && w.Kind != SummaryBranch {
		return Preparation{}, fmt.Errorf("unknown preparation kind %q", w.Kind)
	}
	p := Preparation{
		Kind: w.Kind, Files: w.FileOps, Summarize: w.MessagesToSummarize, TurnPrefix: w.TurnPrefixMessages,
		RetainedTail: w.RetainedTail, SplitTurn: w.IsSplitTurn, TokensBefore: w.TokensBefore, Settings: w.Settings,
		Messages: w.Messages, TotalTokens: w.TotalTokens,
	}
	if s, ok := rawjson.GetString(raw, "previousSummary"); ok {
		p.PreviousSummary = &s
	}
	return p, nil
}

// Capped bounds the settings for a small context window, in tokens (D37).
func (c CompactionSettings) Capped(contextWindow int64) CompactionSettings {
	c.ReserveTokens = min(c.ReserveTokens, contextWindow/4)
	c.KeepRecentTokens = min(c.KeepRecentTokens, contextWindow/4)
	return c
}

// Due reports whether a context of that many tokens is over the threshold.
func (c CompactionSettings) Due(tokens, contextWindow int64) bool {
	return c.Enabled && tokens > contextWindow-c.Capped(contextWindow).ReserveTokens
}
