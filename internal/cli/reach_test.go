package cli

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// neighbour makes the dependencies of a command as another process would have
// them: with a repository of its own over the same folder.
func neighbour(t *testing.T, home string) *factory {
	t.Helper()
	return newFactory(homeEnv(home), newStreams(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}))
}

func homeEnv(home string) []string {
	return []string{"HOME=" + home, "TMPDIR=" + home, "DROVER_REPO=" + home + "/repo", "DROVER_BACKEND=jsonl"}
}

func TestReachWaitsForAnOwnerThatCloses(t *testing.T) {
	home := t.TempDir()
	there, err := neighbour(t, home).drivingBase("prompt")
	if err != nil {
		t.Fatal(err)
	}
	s, ref, err := there.repo.Create(t.Context(), store.CreateOptions{Backend: "jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	options, err := there.harnessOptions(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	h, err := engine.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	server, err := there.listen(t.Context(), ref, h)
	if err != nil {
		t.Fatal(err)
	}
	// It takes nothing more from now on, but still owns the file.
	if err := server.Quiesce(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	var closing sync.WaitGroup
	closing.Go(func() {
		if err := <-refused; !errors.Is(err, owner.ErrClosing) {
			t.Errorf("the closing owner answers %v", err)
		}
		if err := errors.Join(server.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})

	here, err := neighbour(t, home).base("name")
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	name := ""
	err = here.reach(t.Context(), ref, func(c *owner.Client) error {
		err := c.SetName(t.Context(), "from here")
		once.Do(func() { refused <- err })
		return err
	}, func(s *store.Session) error {
		err := s.View(store.MainLane).SetName(t.Context(), "on the file")
		got, _, readErr := s.View(store.MainLane).Name(t.Context())
		name = got
		return errors.Join(err, readErr, s.Close())
	})
	closing.Wait()
	if err != nil || name != "on the file" {
		t.Errorf("reached %q: %v", name, err)
	}
}

func TestReachAsksTheOwner(t *testing.T) {
	home := t.TempDir()
	there, err := neighbour(t, home).drivingBase("prompt")
	if err != nil {
		t.Fatal(err)
	}
	s, ref, err := there.repo.Create(t.Context(), store.CreateOptions{Backend: "jsonl", Name: "before"})
	if err != nil {
		t.Fatal(err)
	}
	err = there.engage(t.Context(), ref, s, func(e *engaged) error {
		here, err := neighbour(t, home).base("name")
		if err != nil {
			return err
		}
		err = here.reach(t.Context(), ref, func(c *owner.Client) error {
			return c.SetName(t.Context(), "after")
		}, func(*store.Session) error {
			t.Error("the file was opened under its owner")
			return nil
		})
		if name, _, _ := e.Session().View(store.MainLane).Name(t.Context()); name != "after" {
			t.Errorf("the owner knows the name %q", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
