package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// A command that is made alone is the one that is made among all of them.
func TestCommandMadeAlone(t *testing.T) {
	find := func(args ...string) *cobra.Command {
		f := newFactory(nil, newStreams(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}))
		root := newRootCmd(f, args)
		cmd, rest, err := root.Find(args[len(args)-1:])
		if err != nil || len(rest) > 0 {
			t.Fatalf("%q finds %q with %q left: %v", args, cmd.Name(), rest, err)
		}
		return cmd
	}
	for _, c := range commandRows() {
		alone, among := find(c.name), find("--quiet", c.name)
		if diff := cmp.Diff(among.UsageString(), alone.UsageString()); diff != "" {
			t.Errorf("%s (-among all +alone):\n%s", c.name, diff)
		}
		if siblings := len(alone.Parent().Commands()); c.name != "completion" && siblings != 1 {
			t.Errorf("to run %s, %d commands were made", c.name, siblings)
		}
	}
}
