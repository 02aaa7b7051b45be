package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/pkg/store/storetest"
)

// CrashPlan says which deaths a matrix tries.
type CrashPlan struct {
	// Every is the stride over the commits of each case; 1 is every commit. Cases
	// start at different ones.
	Every int
	// Effects also dies before and after every effect, Breakpoints closes before
	// every breakpoint.
	Effects, Breakpoints bool
	// Twice lets the second process die, too: of its commits every one of this
	// stride; 0 is never.
	Twice int
}

// Crash lets the process of every case die as planned, drives its session to the
// end in the next one, and wants the end that the case has without a death, modulo
// what it says may differ, and a clean verify (spec §9.3).
func Crash(t *testing.T, newDriver storetest.NewDriver, plan CrashPlan) {
	for i, c := range Cases() {
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
	every := max(1, plan.Every)
	for k := 1 + offset%every; k <= m.commits; k += every {
		m.try(plan.Twice, Death{Commit: k})
	}
	for n := 1; plan.Effects && n <= m.effects; n++ {
		m.try(0, Death{Effect: n})
		m.try(0, Death{Effect: n, After: true})
	}
	for n := 1; plan.Breakpoints && n <= m.breakpoints; n++ {
		m.try(0, Death{Breakpoint: n})
	}
	// Two results of a parallel batch may be placed by one commit or by two, so a
	// few deaths may come too late.
	if m.deaths*10 < m.planned*9 {
		m.t.Errorf("only %d of %d processes died", m.deaths, m.planned)
	}
}

// uninterrupted plays the case without a death, by itself and step by step, and
// measures it.
func (m *matrix) uninterrupted() {
	w := m.world()
	w.Watch = true
	m.must(m.c.play(m.t.Context(), w, m.c.Acts, Death{}), Death{})
	m.want = m.end(w)
	m.commits, m.effects = w.life.commits, len(w.life.effects)

	w = m.world()
	steps := 1 << 30 // never reached
	counted := m.c
	if err := counted.play(m.t.Context(), w, counted.Acts, Death{Breakpoint: steps}); err != nil {
		m.t.Fatalf("step by step: %v", err)
	}
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

// try lets the first process die; with twice the second one as well, of every
// commit of that stride.
func (m *matrix) try(twice int, d Death) {
	m.t.Helper()
	second := m.history(d)
	for k := 1; twice > 0 && k <= second; k += twice {
		m.history(d, Death{Commit: k})
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
