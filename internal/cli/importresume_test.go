package cli

import (
	"testing"

	"github.com/drover-run/drover/pkg/v3import"
)

// An import that was cut short says how it goes on.
func TestInterruptedImportTellsHowItGoesOn(t *testing.T) {
	for _, c := range []struct {
		name string
		o    importOptions
		want string
	}{
		{"with a manifest", importOptions{manifest: "done so far"}, "run it again with the same --manifest 'done so far': it goes on with what is not done"},
		{"without", importOptions{batch: v3import.BatchOptions{OnExists: v3import.OnExistsSkip}}, "run it again: what was imported is skipped"},
		{"with new ids", importOptions{batch: v3import.BatchOptions{OnExists: v3import.OnExistsSkip, Options: v3import.Options{NewID: true}}}, "run it again; with --manifest FILE from the start it would go on with what is not done"},
	} {
		err := c.o.resumable(&failure{code: exitInt, tag: "interrupted", message: "interrupted"})
		if f := explain(err); f.hint != c.want || f.code != exitInt || f.tag != "interrupted" {
			t.Errorf("%s: %d %s, hint %q", c.name, f.code, f.tag, f.hint)
		}
	}
}
