package owner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

func TestWorkSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w work
		for range 2 {
			if !w.begin() {
				t.Fatal("work is refused")
			}
		}
		if !w.busy() {
			t.Fatal("work is not counted")
		}
		ended := make(chan error, 2)
		for range 2 {
			go func() { ended <- w.settle(t.Context()) }()
		}
		w.end()
		synctest.Wait()
		if len(ended) != 0 || !w.begin() {
			t.Fatal("settled with work left")
		}
		w.end()
		w.end()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if w.begin() || w.busy() {
			t.Error("work was admitted after the end")
		}
	})
}

func TestWorkIsNotWaitedForForever(t *testing.T) {
	var w work
	w.begin()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	wantIs(t, w.settle(ctx), why)
	if !w.begin() {
		t.Error("a settling that was given up refuses work")
	}
}

func TestIntents(t *testing.T) {
	var i intents
	at := func(lane string) (held bool, version int) {
		version, changed := i.held(lane)
		return changed != nil, version
	}
	if held, _ := at("a"); held {
		t.Error("held from the beginning")
	}
	first, second := i.hold("a"), i.hold("a")
	_, changed := i.held("a")
	if held, _ := at("b"); held {
		t.Error("another lane is held")
	}
	_, before := at("a")
	first()
	first() // once is enough
	<-changed
	if held, version := at("a"); !held || version == before {
		t.Errorf("held %v at version %d after %d", held, version, before)
	}
	_, changed = i.held("a")
	second()
	<-changed
	if held, _ := at("a"); held {
		t.Error("still held")
	}
	defer i.hold("a")()
	_, changed = i.held("a")
	i.end()
	<-changed
	if held, _ := at("a"); held {
		t.Error("held after the end")
	}
	done := i.promise("a")
	if held, _ := at("a"); !held {
		t.Error("a promise is void after the end")
	}
	done()
	if held, _ := at("a"); held {
		t.Error("a promise is held after it was kept")
	}
}

func TestReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r receipts
		release := make(chan error)
		ran := 0
		carry := func() error { ran++; return <-release }
		type answer struct {
			already bool
			err     error
		}
		answers := make(chan answer, 3)
		ask := func() {
			already, err := r.do(t.Context(), "a", carry)
			answers <- answer{already, err}
		}
		go ask()
		synctest.Wait()
		go ask() // repeats the first while it is carried out
		synctest.Wait()
		broken := errors.New("broken")
		release <- broken
		wantIs(t, (<-answers).err, broken)
		synctest.Wait() // the repeat has become the first
		release <- nil
		if got := <-answers; got.already || got.err != nil {
			t.Errorf("the repeat of a failure is answered %+v", got)
		}
		ask()
		if got := <-answers; !got.already || got.err != nil {
			t.Errorf("the repeat of a success is answered %+v", got)
		}
		wantEqual(t, "runs", ran, 2)
		if _, err := r.do(t.Context(), "b", func() error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

func TestReceiptsAreForgotten(t *testing.T) {
	var r receipts
	do := func(token string, fail error) bool {
		already, _ := r.do(t.Context(), token, func() error { return fail })
		return already
	}
	for i := range maxReceipts * 2 {
		do(fmt.Sprint("failed ", i), errors.New("no"))
	}
	do("old", nil)
	for i := range maxReceipts - 1 {
		do(fmt.Sprint(i), nil)
	}
	if !do("old", nil) {
		t.Error("forgotten too early")
	}
	do("one more", nil)
	if do("old", nil) {
		t.Error("remembered too long")
	}
	wantEqual(t, "receipts", [2]int{len(r.known), len(r.order)}, [2]int{maxReceipts, maxReceipts})
}

func TestReceiptsGiveUp(t *testing.T) {
	var r receipts
	started, release := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		_, _ = r.do(context.Background(), "a", func() error { close(started); <-release; return nil })
	})
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.do(ctx, "a", func() error { t.Error("carried out twice"); return nil })
	wantIs(t, err, context.Canceled)
	close(release)
	first.Wait()
}
