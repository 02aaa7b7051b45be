package program

import (
	"slices"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/tool"
)

// Variables that a program finds in its environment.
const (
	EnvSession   = "DROVER_SESSION_ID"
	EnvOperation = "DROVER_OPERATION_ID"
	EnvLane      = "DROVER_LANE"
	EnvCall      = "DROVER_TOOL_CALL_ID"
	EnvSocket    = "DROVER_TOOL_SOCKET"
	EnvToken     = "DROVER_TOOL_TOKEN"
)

// environment is what a call of the program inherits (D44), is configured to get,
// and is told of the call.
func (t *Tool) environment(dir string, call effect.Invocation, memos *memoServer) []string {
	strip := func(name string) bool {
		return t.options.StripEnv != nil && t.options.StripEnv(name) && !slices.Contains(t.config.PassEnv, name)
	}
	env := append(tool.Environment(dir, strip), t.config.Env...)
	return append(env,
		EnvSession+"="+call.SessionID, EnvOperation+"="+call.OperationID, EnvLane+"="+call.Lane, EnvCall+"="+call.ID,
		EnvSocket+"="+memos.path, EnvToken+"="+memos.token)
}
