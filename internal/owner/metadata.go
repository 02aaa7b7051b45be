package owner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"unicode"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// line is a text of one line; "" takes it away.
func (r request) line(name string) (string, error) {
	s, err := r.text(name)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", usage("%s holds a control character", name)
	}
	return s, nil
}

func (s *Server) name(ctx context.Context, r request) ([]byte, error) {
	name, err := r.line("name")
	if err != nil {
		return nil, err
	}
	return []byte("{}"), s.o.Harness.SetName(ctx, name)
}

func (s *Server) label(ctx context.Context, r request) ([]byte, error) {
	label, err := r.line("label")
	if err != nil {
		return nil, err
	}
	entryID, err := r.text("entryId")
	if err != nil {
		return nil, err
	}
	return []byte("{}"), s.o.Harness.SetLabel(ctx, entryID, label)
}

// The actions of a value request.
const (
	valueSet    = "set"
	valueDelete = "delete"
	listAppend  = "append"
	listClear   = "clear"
)

// value changes one application value or list; drover's own are refused (spec
// §1.3).
func (s *Server) value(ctx context.Context, r request) ([]byte, error) {
	at, err := r.address()
	if err != nil {
		return nil, err
	}
	action, err := r.text("action")
	if err != nil {
		return nil, err
	}
	content := r.fields["value"]
	if (action == valueSet || action == listAppend) && content == nil {
		return nil, malformed("value is missing")
	}
	tree := s.o.Harness.Session().View(store.MainLane)
	value, list := store.NewValue[json.RawMessage](at.Namespace, at.Key), store.NewList[json.RawMessage](at.Namespace, at.Key)
	already := false
	switch action {
	case valueSet:
		err = store.SetValue(ctx, tree, value, content)
	case valueDelete:
		err = store.DeleteValue(ctx, tree, value)
	case listAppend:
		already, err = s.appendList(ctx, r, tree, list, content)
	case listClear:
		err = store.DeleteList(ctx, tree, list)
	default:
		return nil, malformed("a value has no action %q", action)
	}
	return receiptOf(already), err
}

// appendList adds an element once: elements have no id, so the request has one.
func (s *Server) appendList(ctx context.Context, r request, tree *store.Tree, list store.List[json.RawMessage], element json.RawMessage) (already bool, err error) {
	token, err := r.mintedID("requestId")
	if err != nil {
		return false, err
	}
	return s.receipts.do(ctx, token, func() error {
		return store.AppendList(context.WithoutCancel(ctx), tree, list, element)
	})
}

func receiptOf(already bool) []byte {
	o := newObject()
	o.bool("already", already)
	return o.end()
}

func (r request) address() (a store.Address, err error) {
	if a.Namespace, err = r.text("namespace"); err != nil {
		return a, err
	}
	if a.Key, err = r.text("key"); err != nil {
		return a, err
	}
	if err := a.Check(); err != nil {
		return a, usage("%v", err)
	}
	if a.Reserved() {
		return a, usage("the namespace %q is drover's own", a.Namespace)
	}
	return a, nil
}

// configure changes parts of a lane's configuration (spec §5.1).
func (s *Server) configure(ctx context.Context, r request) ([]byte, error) {
	lane, err := s.lane(r)
	if err != nil {
		return nil, err
	}
	c, err := r.configure()
	if err != nil {
		return nil, err
	}
	if err := lane.Configure(ctx, c); err != nil {
		return nil, err
	}
	cfg, err := lane.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	return cfg.AppendJSON(nil)
}

func (r request) configure() (c engine.Configure, err error) {
	if raw := r.raw("model"); raw != nil {
		m, err := parseModel(raw)
		if err != nil {
			return c, err
		}
		c.Model = &m
	}
	level, err := r.text("thinkingLevel")
	if err != nil {
		return c, err
	}
	if level != "" {
		parsed, err := message.ParseThinkingLevel(level)
		if err != nil {
			return c, usage("%v", err)
		}
		c.ThinkingLevel = &parsed
	}
	if r.raw("activeToolNames") != nil {
		names, err := r.texts("activeToolNames")
		if err != nil {
			return c, err
		}
		c.ActiveToolNames = &names
	}
	return c, nil
}

func parseModel(raw json.RawMessage) (m message.ModelRef, err error) {
	f, err := parseFields(raw)
	if err != nil {
		return m, malformed("model is no object")
	}
	if m.Provider, err = f.text("provider"); err != nil {
		return m, err
	}
	if m.ModelID, err = f.text("modelId"); err != nil {
		return m, err
	}
	if m.Provider == "" || m.ModelID == "" {
		return m, malformed("model needs provider and modelId")
	}
	return m, nil
}

// recordUsage adds a row to the ledger once, under the client's id (spec §1.6).
func (s *Server) recordUsage(ctx context.Context, r request) ([]byte, error) {
	lane, err := s.lane(r)
	if err != nil {
		return nil, err
	}
	u, err := r.usage()
	if err != nil {
		return nil, err
	}
	already, err := s.receipts.do(ctx, u.ID, func() error {
		_, err := lane.RecordUsage(context.WithoutCancel(ctx), u)
		return err
	})
	var refused *store.InvalidWrite
	if errors.As(err, &refused) {
		// An earlier owner may have carried it out.
		if already, err = s.hasUsage(ctx, u.ID); err == nil && !already {
			err = usage("%v", refused)
		}
	}
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.str("usageId", u.ID)
	o.bool("already", already)
	return o.end(), nil
}

func (r request) usage() (u store.NewUsage, err error) {
	if u.ID, err = r.mintedID("usageId"); err != nil {
		return u, err
	}
	if u.EntryID, err = r.text("entryId"); err != nil {
		return u, err
	}
	u.RawUsage, u.Details = r.raw("usage"), r.raw("details")
	if u.Usage, err = message.ParseUsage(u.RawUsage); err != nil {
		return u, usage("usage: %v", err)
	}
	return u, nil
}

// hasUsage looks through the ledger, newest first.
func (s *Server) hasUsage(ctx context.Context, id string) (bool, error) {
	q := store.UsageQuery{Descending: true, Limit: 1000}
	for {
		rows, err := s.o.Harness.Session().ScanUsage(ctx, q)
		if err != nil {
			return false, err
		}
		for _, row := range rows {
			if row.ID == id {
				return true, nil
			}
			q.ToSeq = row.Seq - 1
		}
		if len(rows) < q.Limit || q.ToSeq == 0 {
			return false, nil
		}
	}
}
