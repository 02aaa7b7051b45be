// Command makesessions fills a folder with sessions of a given size, to try at
// scale what drover does with them:
//
//	go run ./internal/bulk/makesessions -dir /tmp/many -sessions 10000 -entries 4
//	go run ./internal/bulk/makesessions -dir /tmp/large -backend sqlite -entries 1000000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "makesessions:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", "", "the `folder` to fill")
	sessions := flag.Int("sessions", 1, "how many sessions")
	entries := flag.Int("entries", 4, "how many entries each has")
	text := flag.Int("text", 0, "bytes of text in a message, 0 for about 900")
	plain := flag.Bool("plain", false, "one branch of messages, no side branches or compactions")
	backend := flag.String("backend", "jsonl", "jsonl or sqlite")
	flag.Parse()
	if *dir == "" {
		return errors.New("-dir is missing")
	}
	drivers := map[string]store.Driver{"jsonl": jsonl.Driver{}, "sqlite": sqlite.Driver{}}
	d, ok := drivers[*backend]
	if !ok {
		return fmt.Errorf("no backend %q", *backend)
	}
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	return bulk.Fill(context.Background(), d, *dir, *sessions, bulk.Shape{ID: *backend, Entries: *entries, Text: *text, Plain: *plain})
}
