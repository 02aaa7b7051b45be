package enginetest

import (
	"fmt"
	"os"
	"testing"

	"github.com/drover-run/drover/pkg/store/storetest"
)

// CrashMatrix lets a process die after every commit of every scenario, drives
// the session to its end in the next process, and wants the conversation that
// the scenario has without a crash, with at most one synthetic failure more, and
// a clean verify (spec §9.3). Twice: the second process, too, dies after every
// commit of the recovery; of scenarios with several prompts only in a long test.
func CrashMatrix(t *testing.T, newDriver storetest.NewDriver, twice bool) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			want := s.uninterrupted(t, newDriver)
			twice := twice && (len(s.Prompts) == 1 || os.Getenv("DROVER_TEST_LONG") != "")
			for k := 1; ; k++ {
				over := false
				t.Run(fmt.Sprintf("after commit %d", k), func(t *testing.T) {
					over = !s.crash(t, newDriver, want, k)
					for j := 1; twice && !over && s.crash(t, newDriver, want, k, j); j++ {
					}
				})
				if over {
					if k <= 5 {
						t.Errorf("the scenario has only %d commits", k-1)
					}
					return
				}
			}
		})
	}
}

type ending struct {
	said []Said
	end  End
}

func (s Scenario) world(tb testing.TB, newDriver storetest.NewDriver) *World {
	driver, dir := newDriver(tb)
	w := NewWorld(tb, driver, dir)
	w.Options.Retry.MaxRetries = 4 // for two crashes and what goes wrong by itself
	s.Setup(w)
	return w
}

func (s Scenario) uninterrupted(tb testing.TB, newDriver storetest.NewDriver) ending {
	tb.Helper()
	w := s.world(tb, newDriver)
	w.Watch = true
	w.Open()
	w.fatal(w.Play(tb.Context(), s.Prompts))
	w.Settled()
	said, end := w.End()
	return ending{said, end}
}

// crash plays the scenario in processes that die after the given numbers of
// commits, then in one that lives. It is false when the last of them had nothing
// left to die of.
func (s Scenario) crash(tb testing.TB, newDriver storetest.NewDriver, want ending, commits ...int) bool {
	tb.Helper()
	w := s.world(tb, newDriver)
	died := false
	for _, n := range commits {
		w.OpenUntil(n)
		died = w.Play(tb.Context(), s.Prompts) != nil
		w.close()
	}
	w.Open()
	w.fatal(w.Play(tb.Context(), s.Prompts))
	w.close()
	w.Settled()
	said, end := w.End()
	got, failures := Essence(said)
	essence, expected := Essence(want.said)
	what := fmt.Sprintf("after commits %v", commits)
	Equal(tb, "the conversation "+what, got, essence)
	Equal(tb, "the end "+what, end, want.end)
	if failures > expected+len(commits) {
		tb.Fatalf("%d failures %s, %d without a crash: %v", failures, what, expected, said)
	}
	return died
}
