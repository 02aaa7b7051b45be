package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/redact"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

type exportOptions struct {
	base
	session    string
	form       string
	lane       string
	all        bool
	redactFile string
}

// The forms of an export.
const (
	exportStorage  = "v4-jsonl"
	exportPiV3     = "pi-v3"
	exportMarkdown = "markdown"
	exportHTML     = "html"
	exportJSON     = "json"
)

func newExportCmd(f *factory, runF func(context.Context, *exportOptions) error) *cobra.Command {
	if runF == nil {
		runF = runExport
	}
	o := &exportOptions{}
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a session to stdout, for people or for other programs",
		Long: `Write a session to stdout. Nothing of the session changes, and no owner is in the way.

  markdown   a transcript of the lane's path, from its root to its leaf
  html       the same as one page that needs nothing else, without scripts
  json       the stored entries, as show --json gives them
  pi-v3      a file that the coding agent of that format opens at the lane's leaf
             and goes on with; what is queued stays behind
  v4-jsonl   the whole session as a drover session file, all branches, lanes,
             values and costs; in a repository it is a session again

Branches that are not on the path are left out; --all-branches takes them too, and
marks where they leave the path. With --redact-file every form is redacted: text
that matches is replaced, ids, names of tools and models and signatures never are.
A match in one of those refuses the export. Images are not looked at. Without the
flag nothing is redacted.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused),
		Example: `  drover export @last --format html > talk.html
  drover export @last --format pi-v3 > talk.jsonl`,
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("export"); err != nil {
				return err
			}
			if err := o.checkForm(cmd.Flags().Changed("lane")); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.form, "format", "", "`FORM`: markdown (the default), html, json, pi-v3 or v4-jsonl")
	flags.StringVar(&o.lane, "lane", store.MainLane, "the `LANE` whose path is what happened")
	flags.BoolVar(&o.all, "all-branches", false, "take the branches beside the path, too")
	flags.StringVar(&o.redactFile, "redact-file", "", "replace what `FILE` says, one LITERAL ==> REPLACEMENT or regex:PATTERN ==> REPLACEMENT a line (- for stdin)")
	return cmd
}

func (o *exportOptions) checkForm(laneGiven bool) error {
	if o.form == "" {
		if o.form = exportMarkdown; o.out.format != formatText {
			o.form = exportJSON
		}
	}
	switch o.form {
	case exportJSON:
		if o.out.format == formatText {
			o.out.format = formatJSON
		}
		return nil
	case exportStorage, exportPiV3, exportMarkdown, exportHTML:
	default:
		return usagef("--format %q: want markdown, html, json, pi-v3 or v4-jsonl", escapeLine(o.form))
	}
	switch {
	case o.out.format != formatText:
		return usagef("--format %s and %s exclude each other", o.form, o.out.chosenBy)
	case o.form == exportStorage && laneGiven:
		return usagef("--format v4-jsonl takes the whole session, not a lane").withHint("fork the lane first: `drover fork SESSION --scope branch --lane LANE`")
	}
	return nil
}

func runExport(ctx context.Context, o *exportOptions) error {
	rules, err := o.rules()
	if err != nil {
		return err
	}
	return o.withReader(ctx, o.session, func(ref store.Ref, r store.Reader) error {
		if _, err := laneLeaf(ctx, r, o.lane); err != nil {
			return err
		}
		s, err := export.Open(ctx, r, export.Options{Lane: o.lane, AllBranches: o.all, Redact: rules})
		if err != nil {
			return err
		}
		return firstOf(o.write(ctx, ref, s), s.Close())
	})
}

// rules reads the redaction file; nil without one.
func (o *exportOptions) rules() (*redact.Rules, error) {
	var text []byte
	var err error
	switch o.redactFile {
	case "":
		return nil, nil
	case "-":
		text, err = io.ReadAll(o.out.in)
	default:
		text, err = os.ReadFile(o.redactFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		f := notFoundf("file_not_found", "--redact-file: there is no file %s", escapeLine(o.redactFile))
		f.cause = err
		return nil, f
	}
	if err != nil {
		return nil, fmt.Errorf("read redaction file: %w", err)
	}
	rules, err := redact.Parse(text)
	if bad, ok := errors.AsType[*redact.FileError](err); ok {
		return nil, usagef("--redact-file %s: %v", escapeLine(o.redactFile), bad)
	}
	return rules, err
}

func (o *exportOptions) write(ctx context.Context, ref store.Ref, s *export.Source) error {
	// What can be refused is refused before anything is written.
	var snap *store.Snapshot
	if o.form == exportStorage {
		var err error
		if snap, err = s.Snapshot(); err != nil {
			return err
		}
		if lane := s.Busy(); lane != "" {
			o.out.note("lane %s has an open operation, which goes along: drive it here or there, not in both places", escapeLine(lane))
		}
	}
	if out := s.LeftOut(); out > 0 && o.form != exportStorage && o.form != exportJSON {
		o.out.note("note: %d entries on other branches are left out; --all-branches takes them, too", out)
	}
	var report export.Report
	err := o.out.result(nil, func(d *object) { o.document(ctx, ref, s, d) }, func(w io.Writer) (err error) {
		switch o.form {
		case exportStorage:
			return jsonl.Driver{}.Write(ctx, w, snap)
		case exportPiV3:
			report, err = s.PiV3(ctx, w)
			return err
		case exportHTML:
			return s.Document(ctx, export.HTML(w))
		}
		return s.Document(ctx, export.Markdown(w))
	})
	o.report(report)
	return err
}

// report tells what a legacy file had to say in another way.
func (o *exportOptions) report(r export.Report) {
	for _, tail := range r.Tails {
		o.out.note("compaction %s keeps messages that are not the end of its branch: %d of them stand again in front of it", escapeLine(tail.EntryID), tail.Messages)
	}
}

// document writes the entries as JSON; with all branches also where they part,
// and which of them are the path.
func (o *exportOptions) document(ctx context.Context, ref store.Ref, s *export.Source, d *object) {
	d.str("session", ref.ID)
	d.str("lane", o.lane)
	d.value("leafId", s.LeafID())
	if o.all {
		lanes := s.Lanes()
		d.array("lanes", len(lanes), func(i int, d *object) {
			d.str("lane", lanes[i].Lane)
			d.value("leafId", lanes[i].LeafID)
		})
		d.strs("branchPoints", s.BranchPoints())
		d.strs("leafPath", s.Path())
	}
	d.each("entries", func(add func(store.Appender) bool) error {
		return s.Each(ctx, func(e store.Entry) bool { return add(e) })
	})
}

// explainExport knows why a session may not go out; nil for any other error.
func explainExport(err error) *failure {
	if e, ok := errors.AsType[*export.StructuralMatch](err); ok {
		f := &failure{code: exitRefused, tag: "structural_match", details: func(o *object) {
			o.array("matches", len(e.Matches), func(i int, o *object) {
				o.optStr("entryId", e.Matches[i].EntryID)
				o.str("field", e.Matches[i].Field)
			})
			o.int("more", int64(e.More))
		}}
		return f.withHint("make the line of the redaction file more precise")
	}
	if e, ok := errors.AsType[*export.EmptyKey](err); ok {
		return usagef("%v", e)
	}
	if e, ok := errors.AsType[*export.OpenOperation](err); ok {
		return &failure{code: exitRefused, tag: "lane_busy", details: func(o *object) { o.str("lane", e.Lane) }}
	}
	return nil
}
