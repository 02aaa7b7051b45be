package rewrite

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// EntryFields are what an expression knows of an entry, as e. Timestamp is Unix
// ms, Depth 0 for a root; Lanes are those that stand on the entry, and
// OnLeafPath says whether some lane stands on it or below. Role is a message's,
// Text a message's or a summary's, ToolName a tool result's.
type EntryFields struct {
	ID         string   `expr:"id"`
	Seq        int64    `expr:"seq"`
	Type       string   `expr:"type"`
	CustomType string   `expr:"customType"`
	Role       string   `expr:"role"`
	Timestamp  int64    `expr:"timestamp"`
	Text       string   `expr:"text"`
	ToolName   string   `expr:"toolName"`
	Label      string   `expr:"label"`
	Depth      int      `expr:"depth"`
	Lanes      []string `expr:"lanes"`
	OnLeafPath bool     `expr:"onLeafPath"`
}

// SessionFields are what an expression knows of the session, as session. Times
// are Unix ms.
type SessionFields struct {
	ID              string `expr:"id"`
	CWD             string `expr:"cwd"`
	CreatedAt       int64  `expr:"createdAt"`
	ParentSessionID string `expr:"parentSessionId"`
	Generation      int64  `expr:"generation"`
	Entries         int    `expr:"entries"`
}

// environment is what an expression may name.
type environment struct {
	E       EntryFields   `expr:"e"`
	Session SessionFields `expr:"session"`
}

// Where is a compiled condition over entries.
type Where struct {
	source  string
	program *vm.Program
}

// BadWhere is an expression that cannot be used. Line and Column begin at 1;
// both are 0 when the place is not known.
type BadWhere struct {
	Source       string
	Line, Column int
	Msg          string
	Entry        string // at which one that compiles has failed, "" for one that does not
	Keep         bool   // of one that has failed: it is KeepWhere's
}

// Error shows the line, with a caret under the place.
func (e *BadWhere) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	line := strings.Split(e.Source, "\n")[e.Line-1]
	return fmt.Sprintf("%s\n  %s\n  %s^", e.Msg, strings.ReplaceAll(line, "\t", " "), strings.Repeat(" ", e.Column-1))
}

// CompileWhere compiles and type-checks an expression that must be true or false.
// It fails with *BadWhere.
func CompileWhere(source string) (*Where, error) {
	w := &Where{source: source}
	program, err := expr.Compile(source, expr.Env(&environment{}), expr.AsBool())
	if err != nil {
		return nil, w.bad(err)
	}
	w.program = program
	return w, nil
}

func (w *Where) bad(err error) error {
	bad := &BadWhere{Source: w.source, Msg: err.Error()}
	if at, ok := errors.AsType[*file.Error](err); ok {
		bad.Msg = strings.NewReplacer("type rewrite.EntryFields", "e", "type rewrite.SessionFields", "session").Replace(at.Message)
		if strings.Contains(at.Message, "has no field") {
			bad.Msg += fieldsOf(at.Message)
		}
		if at.Line > 0 && at.Line <= strings.Count(w.source, "\n")+1 {
			bad.Line, bad.Column = at.Line, at.Column+1
		}
	}
	return bad
}

// fieldsOf names the fields of the type that a message is about.
func fieldsOf(message string) string {
	t := reflect.TypeFor[EntryFields]()
	if strings.Contains(message, "rewrite.SessionFields") {
		t = reflect.TypeFor[SessionFields]()
	} else if !strings.Contains(message, "rewrite.EntryFields") {
		return ""
	}
	var names []string
	for field := range t.Fields() {
		names = append(names, field.Tag.Get("expr"))
	}
	return "; it has " + strings.Join(names, ", ")
}

// holds evaluates the expression. It fails with *BadWhere.
func (w *Where) holds(m *vm.VM, env *environment) (bool, error) {
	out, err := m.Run(w.program, env)
	if err != nil {
		return false, w.bad(err)
	}
	yes, _ := out.(bool)
	return yes, nil
}

// describe is what an expression may ask of entry i.
func (t *tree) describe(i int32, e *store.Entry, lanes []string, reached bool) EntryFields {
	n := &t.nodes[i]
	f := EntryFields{
		ID: n.ID, Seq: n.Seq, Type: string(n.Type), CustomType: n.CustomType, Timestamp: n.Timestamp,
		Label: t.labels[n.ID], Depth: int(n.depth), Lanes: lanes, OnLeafPath: reached,
	}
	m := e.Message()
	if m == nil {
		f.Text, _ = rawjson.GetString(e.Payload, "summary")
		return f
	}
	f.Role, f.Text = string(m.Role()), m.Text()
	if m.Role() == message.RoleToolResult {
		f.ToolName, _ = rawjson.GetString(m, "toolName")
	}
	return f
}
