package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/hook"
)

// The topic tells of every interception point, with what it reads and answers, and
// names every field that an answer may have.
func TestHookTopic(t *testing.T) {
	shapes := hook.Shapes()
	for i, p := range hookPoints() {
		if p.point != shapes[i].Point {
			t.Errorf("%s stands where %s is told of", p.point, shapes[i].Point)
		}
		for _, name := range shapes[i].Answer {
			if !strings.Contains(p.effect, name) {
				t.Errorf("%s does not tell what %s does", p.point, name)
			}
		}
	}
	if len(shapes) != len(hookPoints()) || len(shapes) != 11 {
		t.Errorf("%d points of %d are told of", len(hookPoints()), len(shapes))
	}
	for _, b := range breakpoints() {
		if name, ok := strings.CutPrefix(b.kind, "hook."); ok && !slices.Contains(hook.Points(), name) {
			t.Errorf("the breakpoint %s is of no hook", b.kind)
		}
	}
}
