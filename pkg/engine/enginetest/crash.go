package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/pkg/store/storetest"
)

// CrashPlan says which deaths a matrix tries. Each number is a stride: 1 is every
// one, 0 is none; cases start at different ones, so that together they try all.
type CrashPlan struct {
	Cases   int // 0 is every one
	Commits int // after which
	Effects int // before and after which
	// Breakpoints closes before each, having played the case step by step.
	Breakpoints int
	// Twice lets the second process die, too, after such commits of its own.
	Twice int
}

// deaths are the ways in which the first process of a case may die; offset numbers
// the case.
func (p CrashPlan) deaths(offset, commits, effects, breakpoints int) []Death {
	var deaths []Death
	take := func(stride, n int, death func(i int) Death) {
		for i := range n {
			if stride > 0 && (i+offset)%stride == 0 {
				deaths = append(deaths, death(i))
			}
		}
	}
	take(p.Commits, commits, func(i int) Death { return Death{Commit: i + 1} })
	take(p.Effects, 2*effects, func(i int) Death { return Death{Effect: i/2 + 1, After: i%2 == 1} })
	take(p.Breakpoints, breakpoints, func(i int) Death { return Death{Breakpoint: i + 1} })
	return deaths
}

// Crash lets the process of every case die as planned, drives its session to the
// end in the next one, and wants the end that the case has without a death, modulo
// what it says may differ, and a clean verify (spec §9.3).
func Crash(t *testing.T, newDriver storetest.NewDriver, plan CrashPlan) {
	for i, c := range Cases() {
		if i%max(1, plan.Cases) != 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m := &matrix{t: t, c: c, newDriver: newDriver, folder: t.TempDir()}
			m.run(plan, i)
			t.Logf("%d histories: %d commits, %d effects, %d breakpoints", m.histories, m.commits, m.effects, m.breakpoints)
		})
	}
}

// matrix is one case and its deaths.
type matrix struct {
	t         *testing.T
	c         Case
	newDriver storetest.NewDriver
	folder    string

	want                                     Story
	commits, effects, breakpoints, histories int
	planned, deaths                          int
}

func (m *matrix) run(plan CrashPlan, offset int) {
	m.uninterrupted()
	if plan.Breakpoints > 0 {
		m.stepwise()
	}
	for _, d := range plan.deaths(offset, m.commits, m.effects, m.breakpoints) {
		second := m.history(d)
		for k := 1; k <= second; k++ {
			if plan.Twice > 0 && d.Commit > 0 && (k+d.Commit)%plan.Twice == 0 {
				m.history(d, Death{Commit: k})
			}
		}
	}
	// Two results of a parallel batch may be placed by one commit or by two, so a
	// few deaths may come too late.
	if m.planned-m.deaths > 2+m.planned/4 {
		m.t.Errorf("only %d of %d processes died", m.deaths, m.planned)
	}
}

// uninterrupted plays the case without a death and measures it.
func (m *matrix) uninterrupted() {
	w := m.world()
	w.Watch = true
	m.must(m.c.play(m.t.Context(), w, m.c.Acts, Death{}), Death{})
	m.want = m.end(w)
	m.commits, m.effects = w.life.commits, len(w.life.effects)
}

// stepwise plays the case from breakpoint to breakpoint, wants the same end, and
// counts them.
func (m *matrix) stepwise() {
	w := m.world()
	never := Death{Breakpoint: 1 << 30}
	m.must(m.c.play(m.t.Context(), w, m.c.Acts, never), never)
	m.breakpoints = w.steps
	if why := m.c.difference(m.want, m.end(w), 0); why != "" {
		m.t.Fatalf("step by step: %s", why)
	}
}

func (m *matrix) world() *World {
	m.t.Helper()
	m.histories++
	folder := filepath.Join(m.folder, fmt.Sprint(m.histories))
	m.must(os.Mkdir(folder, 0o700), Death{})
	w := m.c.build(m.t, m.newDriver, folder)
	m.must(m.c.play(m.t.Context(), w, m.c.Past, Death{}), Death{})
	return w
}

func (m *matrix) must(err error, d Death) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("the process that dies %s: %v", d, err)
	}
}

// history plays the case in processes that die, then in one that lives, and says
// how much that one committed.
func (m *matrix) history(deaths ...Death) int {
	m.t.Helper()
	w := m.world()
	for _, d := range deaths {
		m.planned++
		if m.c.play(m.t.Context(), w, m.c.Acts, d) != nil || w.life.over() {
			m.deaths++
		}
	}
	if err := m.c.play(m.t.Context(), w, m.c.Acts, Death{}); err != nil {
		m.t.Fatalf("%v: the process that lives: %v", deaths, err)
	}
	got := m.end(w)
	if why := m.c.difference(m.want, got, len(deaths)); why != "" {
		m.t.Fatalf("%v: %s", deaths, why)
	}
	return w.life.commits
}

// end reads what the session has come to and wants nothing in it that no history
// may leave.
func (m *matrix) end(w *World) Story {
	m.t.Helper()
	w.Verify()
	s, err := w.Story()
	m.must(err, Death{})
	if why := s.broken(); why != "" {
		m.t.Fatal(why)
	}
	return s
}
