package op

import (
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// PrepareCompaction cuts a branch, oldest first and beginning with its newest
// compaction, into what is summarized and what is kept; false when there is
// nothing to compact. settings are already capped for the model.
func PrepareCompaction(branch []store.Entry, settings CompactionSettings, o Projection) (Preparation, bool, error) {
	if len(branch) == 0 || branch[len(branch)-1].Type == store.TypeCompaction {
		return Preparation{}, false, nil
	}
	all, err := Project(branch, o)
	if err != nil {
		return Preparation{}, false, err
	}
	p := Preparation{Kind: SummaryCompaction, TokensBefore: message.ContextTokens(all), Settings: settings}
	messages := all
	if first := branch[0]; first.Type == store.TypeCompaction {
		messages = all[1:]
		if s, ok := rawjson.GetString(first.Payload, "summary"); ok {
			p.PreviousSummary = &s
		}
		details, _ := rawjson.Get(first.Payload, "details")
		p.Files.carry(details)
	}
	cut, ok := cutPoint(messages, settings.KeepRecentTokens)
	if !ok {
		return Preparation{}, false, nil
	}
	start := turnStart(messages, cut)
	p.SplitTurn = start < cut
	p.Summarize, p.TurnPrefix, p.RetainedTail = messages[:start], messages[start:cut], messages[cut:]
	if len(p.Summarize)+len(p.TurnPrefix) == 0 {
		return Preparation{}, false, nil
	}
	p.Files.collect(messages[:cut])
	p.Files = p.Files.sorted()
	return p, true, nil
}

// cutPoint finds where the kept part begins: the first valid position at or after
// the message with which the newest ones reach keep tokens, the oldest valid one
// when they never do.
func cutPoint(messages []message.Message, keep int64) (int, bool) {
	reached, tokens := 0, int64(0)
	for i := len(messages) - 1; i >= 0; i-- {
		tokens += message.EstimateTokens(messages[i])
		if tokens >= keep {
			reached = i
			break
		}
	}
	for i := reached; i < len(messages); i++ {
		if mayCut(messages[i]) {
			return i, true
		}
	}
	for i := reached - 1; i >= 0; i-- {
		if mayCut(messages[i]) {
			return i, true
		}
	}
	return 0, false
}

// mayCut reports whether the kept part may begin with a message: never with a
// result whose call would be cut off.
func mayCut(m message.Message) bool {
	switch m.Role() {
	case message.RoleUser, message.RoleAssistant, message.RoleCustom, message.RoleBashExecution,
		message.RoleBranchSummary, message.RoleCompactionSummary:
		return true
	}
	return false
}

// turnStart is where the turn of a cut begins: the cut itself when it starts a
// turn, otherwise the nearest earlier message that does.
func turnStart(messages []message.Message, cut int) int {
	for i := cut; i >= 0; i-- {
		switch messages[i].Role() {
		case message.RoleUser, message.RoleBashExecution, message.RoleBranchSummary:
			return i
		}
	}
	return cut
}

// branchSummaryReserve is kept free of the context window for the summary of an
// abandoned branch, in tokens.
const branchSummaryReserve = 16_384

// PrepareBranchSummary takes the newest entries of an abandoned branch, oldest
// first, that fit the model's context window; false when there is nothing to
// summarize.
func PrepareBranchSummary(abandoned []store.Entry, contextWindow int64, o Projection) (Preparation, bool, error) {
	p := Preparation{Kind: SummaryBranch}
	messages, err := Project(abandoned, o)
	if err != nil {
		return p, false, err
	}
	budget := contextWindow - min(branchSummaryReserve, contextWindow/4)
	first := len(messages)
	for i := len(messages) - 1; i >= 0; i-- {
		tokens := message.EstimateTokens(messages[i])
		if messages[i].Role() == message.RoleToolResult {
			tokens = 0
		}
		if p.TotalTokens+tokens > budget && first < len(messages) {
			break
		}
		p.TotalTokens += tokens
		first = i
	}
	for _, m := range messages[first:] {
		if m.Role() != message.RoleToolResult {
			p.Messages = append(p.Messages, m)
		}
	}
	for _, e := range abandoned {
		if e.Type == store.TypeBranchSummary || e.Type == store.TypeCompaction {
			details, _ := rawjson.Get(e.Payload, "details")
			p.Files.carry(details)
		}
	}
	p.Files.collect(p.Messages)
	p.Files = p.Files.sorted()
	return p, len(p.Messages) > 0, nil
}

// carry takes over the file lists of an earlier summary.
func (f *FileOps) carry(details []byte) {
	f.Read = append(f.Read, texts(details, "readFiles")...)
	f.Edited = append(f.Edited, texts(details, "modifiedFiles")...)
}

func texts(object []byte, key string) []string {
	raw, ok := rawjson.Get(object, key)
	if !ok {
		return nil
	}
	var out []string
	for element, err := range rawjson.Elements(raw) {
		if err != nil {
			return out
		}
		if s, err := rawjson.Unquote(element); err == nil {
			out = append(out, s)
		}
	}
	return out
}

// collect adds the paths that read, write and edit calls name.
func (f *FileOps) collect(messages []message.Message) {
	for _, m := range messages {
		if m.Role() != message.RoleAssistant {
			continue
		}
		for _, call := range m.ToolCalls() {
			path, ok := rawjson.GetString(call.Arguments, "path")
			if !ok {
				continue
			}
			switch call.Name {
			case "read":
				f.Read = append(f.Read, path)
			case "write":
				f.Written = append(f.Written, path)
			case "edit":
				f.Edited = append(f.Edited, path)
			}
		}
	}
}
