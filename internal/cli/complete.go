package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// completeSession completes the first argument with the ids of the repository's
// sessions, whose headers alone it reads; then completes what follows it, as far as
// is told how.
func completeSession(f *factory, rest ...completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch n := len(args); {
		case n > len(rest) || f.flags.collect(cmd) != nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case n > 0:
			return f.complete(cmd.Context(), args[0], typed, rest[n-1])
		}
		return f.completeID(cmd.Context())
	}
}

func (f *factory) completeID(ctx context.Context) ([]string, cobra.ShellCompDirective) {
	repo, err := f.repo("complete")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	listed, err := repo.List(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ids := []string{"@last"}
	for _, l := range listed {
		if l.Err == nil {
			ids = append(ids, l.Ref.ID)
		}
	}
	// A path names a session too, so files stay on offer.
	return ids, cobra.ShellCompDirectiveDefault
}

// completer finds what a word may be that means something in a session. A tab and
// a description may follow each.
type completer func(context.Context, store.Reader) ([]string, error)

// complete asks a session, which it only reads.
func (f *factory) complete(ctx context.Context, session, typed string, of completer) ([]string, cobra.ShellCompDirective) {
	repo, err := f.repo("complete")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ref, err := repo.Resolve(ctx, session)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	r, err := repo.View(ctx, ref)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer r.Close()
	all, err := of(ctx, r)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var fitting []string
	for _, word := range all {
		if strings.HasPrefix(word, typed) {
			fitting = append(fitting, word)
		}
	}
	return fitting, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func completeLanes(ctx context.Context, r store.Reader) ([]string, error) { return store.Lanes(ctx, r) }

// offered is how many entries are on offer, the newest first.
const offered = 100

func completeEntries(ctx context.Context, r store.Reader) ([]string, error) {
	entries, err := r.ScanEntries(ctx, store.EntryQuery{Descending: true, Limit: offered})
	var ids []string
	for _, e := range entries {
		what := string(e.Type)
		if m := e.Message(); m != nil {
			what = string(m.Role())
		}
		ids = append(ids, e.ID+"\t"+escapeLine(what))
	}
	return ids, err
}

// completeTargets are the entries, and the place before all of them.
func completeTargets(ctx context.Context, r store.Reader) ([]string, error) {
	ids, err := completeEntries(ctx, r)
	return append(ids, "root"), err
}

func completeQueued(ctx context.Context, r store.Reader) ([]string, error) {
	pending, err := r.ScanValues(ctx, store.PendingEntries().Address())
	var ids []string
	for _, p := range pending {
		ids = append(ids, p.Address.Key)
	}
	return ids, err
}

// completeSessions completes each of several arguments with the ids of the sessions.
func completeSessions(f *factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if f.flags.collect(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f.completeID(cmd.Context())
	}
}

// flagWords are what a flag of a command may be where only a few words will do.
func flagWords(command, flag string) []string {
	switch flag {
	case "output":
		return []string{"text", "json", "ndjson"}
	case "backend":
		return []string{"sqlite", "jsonl"}
	case "scope":
		return []string{"branch", "tree"}
	case "position":
		return []string{"at", "before"}
	case "by":
		return []string{"session", "model", "provider", "day", "lane"}
	case "status":
		return statuses()
	case "on-exists":
		return []string{"skip", "fail", "replace"}
	case "derived":
		return []string{"fail", "drop", "redact"}
	case "thinking":
		var levels []string
		for _, l := range message.ThinkingLevels() {
			levels = append(levels, string(l))
		}
		return levels
	case "format":
		if command == "show" {
			return []string{"text", "markdown", "html", "json"}
		}
		return []string{"markdown", "html", "json", "pi-v3", "v4-jsonl"}
	}
	return nil
}

// completeFlags gives every flag below a command whose words are known its
// completion: --lane and --entry out of the session that the first argument names.
func completeFlags(f *factory, cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if words := flagWords(cmd.Name(), flag.Name); words != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for name, of := range map[string]cobra.CompletionFunc{
		"model": completeModels(f), "tools": completeTools(f), "stop-before": completeConfigured(f, breakpointWords),
		"skill": completeConfigured(f, skillWords), "template": completeConfigured(f, templateWords),
	} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, of)
		}
	}
	for name, of := range map[string]completer{"lane": completeLanes, "entry": completeEntries} {
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		// It fails only for a flag that is not there, or has one already.
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			session := f.env("DROVER_SESSION")
			if len(args) > 0 {
				session = args[0]
			}
			if session == "" || f.flags.collect(cmd) != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return f.complete(cmd.Context(), session, typed, of)
		})
	}
	for _, c := range cmd.Commands() {
		completeFlags(f, c)
	}
}
