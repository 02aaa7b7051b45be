package cli

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-run/drover/pkg/rewrite"
	"github.com/drover-run/drover/pkg/store"
)

// commandsFor are the commands that rewrite what still holds something in the same way.
// The session itself is done, so that its own would not find what was to go; a fork
// takes those that were made from it along.
func (o *rewriteOptions) commandsFor(ctx context.Context, held []relative) ([]string, error) {
	reached := make(map[string]bool)
	for _, h := range held {
		reached[h.ref.ID] = h.err == nil
	}
	var commands []string
	for _, h := range held {
		if h.err != nil || reached[h.of] {
			continue
		}
		covers := slices.ContainsFunc(held, func(other relative) bool { return other.of == h.ref.ID })
		command, err := o.commandFor(ctx, h.ref, covers)
		if err != nil {
			return nil, err
		}
		commands = append(commands, command)
	}
	return commands, nil
}

// commandFor selects in another session what was selected in this one, as far as it is
// there. What had to be proven is left to whoever knows it.
func (o *rewriteOptions) commandFor(ctx context.Context, ref store.Ref, forks bool) (string, error) {
	s := &o.selection
	entries, err := o.among(ctx, ref, "--drop-entry", s.DropEntries)
	if err != nil {
		return "", err
	}
	branches, err := o.among(ctx, ref, "--drop-branch", s.DropBranches)
	if err != nil {
		return "", err
	}
	args := append(append([]string{"drover", "rewrite", o.naming(ref)}, entries...), branches...)
	for _, given := range []struct{ flag, value string }{
		{"--drop-where", o.given.dropWhere}, {"--keep-where", o.given.keepWhere}, {"--redact-file", o.given.redactFile},
	} {
		if given.value != "" {
			args = append(args, given.flag, quoteArg(given.value))
		}
	}
	if s.Derived != rewrite.DerivedFail {
		args = append(args, "--derived", string(s.Derived))
	}
	for _, given := range []struct {
		flag string
		set  bool
	}{
		{"--prune-abandoned", s.PruneAbandoned}, {"--drop-usage", s.DropUsage}, {"--remint-ids", s.RemintIDs},
		{"--remove-backups", o.removeBackups}, {"--include-forks", forks},
	} {
		if given.set {
			args = append(args, given.flag)
		}
	}
	return strings.Join(args, " "), nil
}

// among gives the flag for those of the ids that a session has.
func (o *rewriteOptions) among(ctx context.Context, ref store.Ref, flag string, ids []string) (args []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = o.view(ctx, ref, func(r store.Reader) error {
		there, err := r.Entries(ctx, ids)
		for _, e := range there {
			args = append(args, flag, quoteArg(e.ID))
		}
		return err
	})
	return args, err
}

// quoteArg is an argument as a shell takes it.
func quoteArg(arg string) string {
	special := func(r rune) bool {
		return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:@%+=,", r)
	}
	if arg != "" && !strings.ContainsFunc(arg, special) {
		return arg
	}
	return "'" + strings.ReplaceAll(escapeLine(arg), "'", `'\''`) + "'"
}
