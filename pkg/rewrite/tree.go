package rewrite

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// none is no entry: what is above a root.
const none = int32(-1)

// node is what has to be known of an entry to decide about it.
type node struct {
	store.Structure
	parent int32
	depth  int32 // 0 for a root
	role   message.Role
	// call is the assistant message whose call this tool result answers.
	call int32
	// maker is the newest assistant message with tool calls on the path, this one
	// included.
	maker int32
	// derives: the content was made from that of others.
	derives bool
}

// tree is the conversation without its payloads, parents before their children.
type tree struct {
	nodes  []node
	index  map[string]int32
	leaves map[string]int32 // by lane
	labels map[string]string
	calls  map[int32][]string // the tool calls of an assistant message
	from   map[int32]string   // the fromId of a summary of a branch

	seed   maphash.Seed
	hashes []uint64 // of the messages, by entry; nil when nobody asked
}

// grow reads the structure of a session.
func grow(ctx context.Context, snap *store.Snapshot) (*tree, error) {
	t := &tree{
		index: make(map[string]int32), leaves: make(map[string]int32), labels: make(map[string]string),
		calls: make(map[int32][]string), from: make(map[int32]string), seed: maphash.MakeSeed(),
	}
	leaves := make(map[string]string)
	for r, err := range snap.Skeleton() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		switch {
		case r.Entry != nil:
			if err := t.add(r.Entry.Structure); err != nil {
				return nil, err
			}
		case r.Kind != store.KindValue:
		case r.Address.Namespace == "pi.lane.leaf":
			id, _ := rawjson.Unquote(r.Value) // null is no string, and no entry
			leaves[r.Address.Key] = id
		case r.Address.Namespace == "pi.entry.label":
			t.labels[r.Address.Key], _ = rawjson.Unquote(r.Value)
		}
	}
	for lane, id := range leaves {
		at, ok := t.index[id]
		if !ok && id != "" {
			return nil, store.MissingEntry(id, "lane "+lane)
		}
		if !ok {
			at = none
		}
		t.leaves[lane] = at
	}
	return t, nil
}

func (t *tree) add(s store.Structure) error {
	n := node{Structure: s, parent: none, call: none, maker: none}
	if s.ParentID != "" {
		p, ok := t.index[s.ParentID]
		if !ok {
			return store.MissingEntry(s.ParentID, "entry "+s.ID)
		}
		n.parent, n.depth = p, t.nodes[p].depth+1
	}
	if _, taken := t.index[s.ID]; taken {
		return fmt.Errorf("entry %s is there twice", s.ID)
	}
	t.index[s.ID] = int32(len(t.nodes))
	t.nodes = append(t.nodes, n)
	return nil
}

// read learns from the payload of entry i what follows from it for others.
func (t *tree) read(i int32, e *store.Entry) {
	n := &t.nodes[i]
	if n.parent != none {
		n.maker = t.nodes[n.parent].maker
	}
	n.derives = e.Type == store.TypeCompaction || e.Type == store.TypeBranchSummary
	if e.Type == store.TypeBranchSummary {
		t.from[i], _ = rawjson.GetString(e.Payload, "fromId")
	}
	m := e.Message()
	if m == nil {
		return
	}
	if t.hashes != nil {
		t.hashes[i] = maphash.Bytes(t.seed, m)
	}
	n.role = m.Role()
	switch n.role {
	case message.RoleAssistant:
		if made := m.ToolCalls(); len(made) > 0 {
			n.maker = i
			for _, call := range made {
				t.calls[i] = append(t.calls[i], call.ID)
			}
		}
	case message.RoleToolResult:
		id, _ := rawjson.GetString(m, "toolCallId")
		if n.maker != none && slices.Contains(t.calls[n.maker], id) {
			n.call = n.maker
		}
	case message.RoleBranchSummary:
		n.derives = true
		t.from[i], _ = rawjson.GetString(m, "fromId")
	case message.RoleCompactionSummary:
		n.derives = true
	}
}

// reached marks what the lanes' leaves stand on.
func (t *tree) reached() []bool {
	on := make([]bool, len(t.nodes))
	for _, i := range t.leaves {
		for ; i != none && !on[i]; i = t.nodes[i].parent {
			on[i] = true
		}
	}
	return on
}

// lanesAt are the lanes that stand on entries, in byte order.
func (t *tree) lanesAt() map[int32][]string {
	at := make(map[int32][]string)
	for lane, i := range t.leaves {
		if i != none {
			at[i] = append(at[i], lane)
		}
	}
	for _, lanes := range at {
		slices.Sort(lanes)
	}
	return at
}
