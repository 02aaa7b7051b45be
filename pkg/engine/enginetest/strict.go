package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Complaint says why no provider would take a request, "" when one would: every
// message is whole and of a role that providers know, its text is Unicode, every
// tool call has its result directly after it in the order of the calls, and the
// conversation begins with a question and ends where an answer is due.
func Complaint(req effect.Request) string {
	if len(req.Messages) == 0 {
		return "the request says nothing"
	}
	for i, m := range req.Messages {
		if why := messageComplaint(m); why != "" {
			return fmt.Sprintf("message %d: %s", i, why)
		}
	}
	if why := orderComplaint(req.Messages); why != "" {
		return why
	}
	if !utf8.ValidString(req.SystemPrompt) {
		return "the system prompt is no Unicode"
	}
	return toolsComplaint(req.Tools)
}

func messageComplaint(m message.Message) string {
	if at := rawjson.ValidUTF8(m); at >= 0 {
		return fmt.Sprintf("byte %d is no Unicode", at)
	}
	if err := message.Validate(m); err != nil {
		return err.Error()
	}
	if at := loneSurrogate(m); at >= 0 {
		return fmt.Sprintf("half a character at byte %d", at)
	}
	switch m.Role() {
	case message.RoleUser, message.RoleSystem, message.RoleToolResult:
	case message.RoleAssistant:
		if blocks, err := m.Blocks(); err != nil || len(blocks) == 0 {
			return "an answer without content"
		}
		switch m.StopReason() {
		case message.StopStop, message.StopLength, message.StopToolUse:
		default:
			return fmt.Sprintf("an answer that ended with %s is no part of a conversation", m.StopReason())
		}
	default:
		return fmt.Sprintf("no provider knows the role %s", m.Role())
	}
	return ""
}

// loneSurrogate finds an escape in valid JSON that is half of a character, -1 when
// there is none.
func loneSurrogate(raw []byte) int {
	unit := func(i int) rune {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return -1
		}
		u, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(u)
	}
	for i := 0; i < len(raw); {
		u := unit(i)
		switch {
		case raw[i] != '\\':
			i++
		case u < 0:
			i += 2
		case !utf16.IsSurrogate(u):
			i += 6
		case utf16.DecodeRune(u, unit(i+6)) == utf8.RuneError:
			return i
		default:
			i += 12
		}
	}
	return -1
}

// orderComplaint judges who speaks when.
func orderComplaint(messages []message.Message) string {
	said := slices.DeleteFunc(slices.Clone(messages), func(m message.Message) bool { return m.Role() == message.RoleSystem })
	if len(said) == 0 || said[0].Role() != message.RoleUser {
		return "the conversation does not begin with a user"
	}
	if said[len(said)-1].Role() == message.RoleAssistant {
		return "the conversation ends with an answer: nothing is asked"
	}
	seen := map[string]bool{}
	for i := 0; i < len(said); {
		m := said[i]
		i++
		if m.Role() == message.RoleToolResult {
			return fmt.Sprintf("message %d is the result of a call that nobody made there", i-1)
		}
		for _, call := range m.ToolCalls() {
			switch {
			case call.ID == "" || seen[call.ID]:
				return fmt.Sprintf("call id %q is empty or taken", call.ID)
			case i == len(said) || said[i].Role() != message.RoleToolResult:
				return fmt.Sprintf("call %s has no result directly after it", call.ID)
			case resultOf(said[i]) != call.ID:
				return fmt.Sprintf("the result of %s stands where that of call %s belongs", resultOf(said[i]), call.ID)
			}
			seen[call.ID] = true
			i++
		}
	}
	return ""
}

func resultOf(m message.Message) string {
	id, _ := rawjson.GetString(m, "toolCallId")
	return id
}

func toolsComplaint(specs []message.ToolSpec) string {
	seen := map[string]bool{}
	for _, spec := range specs {
		if spec.Name == "" || seen[spec.Name] {
			return fmt.Sprintf("tool name %q is empty or taken", spec.Name)
		}
		if !utf8.ValidString(spec.Name+spec.Description) || spec.Parameters != nil && rawjson.Valid(spec.Parameters) != nil {
			return fmt.Sprintf("tool %s cannot be described", spec.Name)
		}
		seen[spec.Name] = true
	}
	return ""
}

// Strict is a registry whose models refuse what Complaint complains about, as a
// permanent error, after having told complain.
func Strict(models effect.Models, complain func(format string, args ...any)) effect.Models {
	return strictModels{models, complain}
}

type strictModels struct {
	effect.Models
	complain func(format string, args ...any)
}

func (s strictModels) Resolve(ref message.ModelRef) (effect.Model, error) {
	m, err := s.Models.Resolve(ref)
	if err != nil {
		return nil, err
	}
	switch d := m.(type) {
	case effect.Adopter:
		return strictAdopter{strictDeferred{strictModel{m, s.complain}, d}, d}, nil
	case effect.DeferredModel:
		return strictDeferred{strictModel{m, s.complain}, d}, nil
	}
	return strictModel{m, s.complain}, nil
}

type strictModel struct {
	effect.Model
	complain func(format string, args ...any)
}

func (s strictModel) Stream(ctx context.Context, req effect.Request) effect.Events {
	if why := Complaint(req); why != "" {
		return s.refuse(req, why)
	}
	return s.Model.Stream(ctx, req)
}

func (s strictModel) refuse(req effect.Request, why string) effect.Events {
	s.complain("the model refuses request %s: %s", req.ResponseEntryID, why)
	events, _ := Refuse("bad request: "+why, 400, 0).events(s.Info(), req.Now)
	return slices.Values(events)
}

type strictDeferred struct {
	strictModel
	deferred effect.DeferredModel
}

func (s strictDeferred) Poll(ctx context.Context, h message.DeferredHandle, req effect.Request) effect.Events {
	if why := Complaint(req); why != "" {
		return s.refuse(req, why)
	}
	return s.deferred.Poll(ctx, h, req)
}

func (s strictDeferred) Cancel(ctx context.Context, h message.DeferredHandle) error {
	return s.deferred.Cancel(ctx, h)
}

type strictAdopter struct {
	strictDeferred
	adopter effect.Adopter
}

func (s strictAdopter) Adopt(ctx context.Context, now int64, lost []effect.Submission) effect.Adoption {
	return s.adopter.Adopt(ctx, now, lost)
}
