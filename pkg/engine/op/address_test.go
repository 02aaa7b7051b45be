package op_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// The persisted namespaces and keys of §1.3's table; all of them are reserved.
func TestAddresses(t *testing.T) {
	tests := []struct {
		got, want store.Address
	}{
		{op.Meta("O").Address(), store.Address{Namespace: "pi.op.meta", Key: "O"}},
		{op.StateOf("O").Address(), store.Address{Namespace: "pi.op.state", Key: "O"}},
		{op.LastResult("main").Address(), store.Address{Namespace: "pi.lane.lastResult", Key: "main"}},
		{op.ToolArgs("O").Address(), store.Address{Namespace: "pi.op.tool_args", Key: "O:"}},
		{op.ToolMemos("O").Address(), store.Address{Namespace: "pi.op.tool_memo", Key: "O:"}},
		{op.Preparations("O").Address(), store.Address{Namespace: "pi.op.preparation", Key: "O:"}},
		{op.ToolOutputs("O").Address(), store.Address{Namespace: "pi.pending.tool_output", Key: "O:"}},
		{op.Frames("O", "R").Address(), store.Address{Namespace: "pi.pending.assistant_frame", Key: "O:R"}},
	}
	for _, tt := range tests {
		if tt.got != tt.want || !tt.got.Reserved() {
			t.Errorf("got %v, reserved %t, want %v", tt.got, tt.got.Reserved(), tt.want)
		}
	}
}

// What the terminal transaction scans is every operation-owned value but the two
// it names itself (§3.13).
func TestOwned(t *testing.T) {
	wantEqual(t, op.Owned("O"), []store.Address{
		{Namespace: "pi.op.tool_args", Key: "O:"}, {Namespace: "pi.op.tool_memo", Key: "O:"},
		{Namespace: "pi.op.preparation", Key: "O:"}, {Namespace: "pi.pending.tool_output", Key: "O:"},
	})
}

// A state that cannot be written refuses its whole transaction.
func TestUnknownVariantsAreNotWritten(t *testing.T) {
	for name, s := range map[string]op.State{
		"control":      op.RunState{Phase: op.Starting{}},
		"continuation": op.RunState{Control: running, Phase: op.Checkpoint{}},
		"call":         op.RunState{Control: running, Phase: op.Tools{Batch: op.ToolBatch{Calls: []op.ToolCall{{Status: "later"}}}}},
	} {
		if w, err := json.Marshal(s); err == nil {
			t.Errorf("%s: written as %s", name, w)
		}
	}
	if w, err := json.Marshal(op.Intent{Kind: "later"}); err == nil {
		t.Errorf("intent: written as %s", w)
	}
}
