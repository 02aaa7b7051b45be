package cli

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/redact"
	"github.com/drover-run/drover/pkg/rewrite"
)

type rewriteOptions struct {
	base
	session   string
	selection rewrite.Selection
	given     rewriteFlags // what parts of it were read from
	prove     []string
	dryRun    bool

	forks         bool
	removeBackups bool
	keepOriginal  string // a file
	report        string // a file
	reason        string

	// purgeIndex takes a session out of the search index, and proves it; nil where
	// there is no place for an index.
	purgeIndex func(ctx context.Context, sessionID string, texts []string) error
}

const rewriteHelp = `Rewrite a session without some of its entries, or without some texts. This is the
only command that removes what a session's history says, and it cannot be undone.

The new file is built beside the old one, verified, and searched for everything that
had to go, in every spelling that JSON has, before it takes the old one's place; then
it is verified and searched again where it lies. Children of a dropped entry get its
nearest kept ancestor as their parent, and the ledger keeps its numbers. A tool call
and its results go together: to drop one result takes the answer with its call along,
and with that all that the answer says; to keep it, replace the text with
--redact-file. --dry-run names the entries that would go or change, 20 of them without
-v, and changes nothing.

Files that tools have written elsewhere are no part of a session, and stay. One is the
full output of a command that was too long: bash keeps it in the folder for temporary
files. Those that the session names and that are still there are told on stderr.

An expression (EXPR) is of the language Expr (expr-lang.org), and true or false. It sees
the entry as e, with id, seq, type, customType, role, timestamp (Unix ms), text,
toolName, label, depth, lanes, onLeafPath, and the session as session, with id, cwd,
createdAt, parentSessionId, generation, entries:

  drover rewrite S --drop-where 'e.role == "toolResult" && len(e.text) > 10000'
  drover rewrite S --drop-where 'e.timestamp < date("2025-12-09").UnixMilli()'
  drover rewrite S --drop-where 'e.text matches "(?i)password"'

A day begins at midnight UTC; date("2025-12-09T08:00:00+01:00") is any instant.

A redaction FILE has a rule a line, and empty lines and lines that begin with # mean
nothing: the text before the first " ==> " is replaced by the text behind it wherever
content can live, and regex:PATTERN stands for what a regular expression matches:

  Jörg Müller ==> [name]
  regex:(?i)j(ö|oe)rg m(ü|ue)ller ==> [name]

A text is also found where JSON escapes it, and where JSON stands within a text, as in
the output of a tool; a pattern sees texts as they are, so that it misses what is
escaped within them. Case counts unless the pattern begins with (?i). Ids, names of
tools and models and the like are never changed: a rule that matches one is refused.`

func newRewriteCmd(f *factory, runF func(context.Context, *rewriteOptions) error) *cobra.Command {
	if runF == nil {
		runF = runRewrite
	}
	o := &rewriteOptions{purgeIndex: f.purgeIndex}
	var flags rewriteFlags
	cmd := &cobra.Command{
		Use:   "rewrite SESSION",
		Short: "Remove entries or texts from a session for good",
		Long: rewriteHelp +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("rewrite"); err != nil {
				return err
			}
			if err := o.choose(&flags); err != nil {
				return err
			}
			if x := f.searchIndexOf(o.repo); o.purgeIndex == nil && x != nil {
				o.purgeIndex = x.purge
			}
			return runF(cmd.Context(), o)
		},
	}
	flags.bind(cmd, o)
	return cmd
}

// rewriteFlags are what has to be read or compiled before it is an option.
type rewriteFlags struct {
	dropWhere, keepWhere string
	redactFile           string
	derived              string
}

func (r *rewriteFlags) bind(cmd *cobra.Command, o *rewriteOptions) {
	s, flags := &o.selection, cmd.Flags()
	flags.StringArrayVar(&s.DropEntries, "drop-entry", nil, "drop the entry with this `ID`; may be repeated")
	flags.StringArrayVar(&s.DropBranches, "drop-branch", nil, "drop the entry with this `ID` and all below it; may be repeated")
	flags.StringVar(&r.dropWhere, "drop-where", "", "drop the entries for which `EXPR` is true")
	flags.StringVar(&r.keepWhere, "keep-where", "", "drop the entries for which `EXPR` is not true")
	flags.BoolVar(&s.PruneAbandoned, "prune-abandoned", false, "drop all that no lane's leaf reaches")
	flags.StringVar(&r.redactFile, "redact-file", "", "replace texts as the rules in `FILE` say (- for stdin)")
	flags.BoolVar(&s.RemintIDs, "remint-ids", false, "give every entry a new id")
	flags.StringVar(&r.derived, "derived", string(rewrite.DerivedFail), "what to do (`HOW`) with summaries of what is dropped: fail, drop or redact")
	flags.BoolVar(&s.DropUsage, "drop-usage", false, "drop the ledger rows of dropped entries too")
	flags.StringArrayVar(&o.prove, "prove", nil, "prove that this `TEXT` is nowhere afterwards; may be repeated")
	flags.BoolVar(&o.forks, "include-forks", false, "rewrite the session's forks and children in the same way")
	flags.BoolVar(&o.removeBackups, "remove-backups", false, "remove the backup files of the session, which would keep what is erased")
	flags.StringVar(&o.keepOriginal, "keep-original", "", "keep the old session as `FILE`")
	flags.StringVar(&o.report, "report", "", "write who, when, why and how much to `FILE`, but never what")
	flags.StringVar(&o.reason, "reason", "", "why: a `TEXT` for the report and for the session's own record")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing")
}

// choose reads and compiles what was selected, before any session is read.
func (o *rewriteOptions) choose(f *rewriteFlags) (err error) {
	s := &o.selection
	o.given = *f
	if s.DropWhere, err = compileWhere("--drop-where", f.dropWhere); err != nil {
		return err
	}
	if s.KeepWhere, err = compileWhere("--keep-where", f.keepWhere); err != nil {
		return err
	}
	switch s.Derived = rewrite.Derived(f.derived); s.Derived {
	case rewrite.DerivedFail, rewrite.DerivedDrop, rewrite.DerivedRedact:
	default:
		return usagef("--derived %q: want fail, drop or redact", escapeLine(f.derived))
	}
	if f.redactFile != "" {
		if s.Rules, err = o.readRules(f.redactFile); err != nil {
			return err
		}
	}
	return o.check()
}

func (o *rewriteOptions) check() error {
	s := &o.selection
	for _, text := range o.prove {
		if err := checkUTF8("--prove", []byte(text)); err != nil {
			return err
		}
	}
	cuts := len(s.DropEntries)+len(s.DropBranches) > 0 || s.DropWhere != nil || s.KeepWhere != nil || s.PruneAbandoned
	switch {
	case !cuts && s.Rules.Empty() && !s.RemintIDs && len(o.prove) == 0:
		return usagef("what shall go? Name it with --drop-entry, --drop-branch, --drop-where, --keep-where, --prune-abandoned or --redact-file")
	case o.report != "" && o.reason == "":
		return usagef("--report tells why: give --reason, too")
	case o.keepOriginal != "" && o.forks:
		return usagef("--keep-original keeps one session and --include-forks rewrites several")
	case rewrite.NewProof(s.Rules, o.prove).Text(o.reason):
		return usagef("--reason holds a text that shall go, and would keep it")
	}
	return nil
}

func compileWhere(flag, source string) (*rewrite.Where, error) {
	if source == "" {
		return nil, nil
	}
	w, err := rewrite.CompileWhere(source)
	if err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	return w, nil
}

func (o *rewriteOptions) readRules(path string) (*rewrite.Rules, error) {
	var text []byte
	var err error
	if path == "-" {
		text, err = readStdin(o.out)
	} else if text, err = os.ReadFile(path); errors.Is(err, os.ErrNotExist) {
		return nil, notFoundf("file_not_found", "--redact-file: there is no file %s", escapeLine(path))
	}
	if err != nil {
		return nil, err
	}
	rules, err := rewrite.ParseRules(bytes.NewReader(text))
	if bad, ok := errors.AsType[*redact.FileError](err); ok {
		return nil, usagef("--redact-file %s: %v", escapeLine(path), bad)
	}
	if err == nil && rules.Empty() {
		return nil, usagef("--redact-file %s has no rule", escapeLine(path))
	}
	return rules, err
}
