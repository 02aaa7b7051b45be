package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/v3import"
)

type importOptions struct {
	base
	paths     []string
	recursive bool
	backend   string
	onExists  string
	manifest  string
	batch     v3import.BatchOptions
}

func newImportCmd(f *factory, runF func(context.Context, *importOptions) error) *cobra.Command {
	if runF == nil {
		runF = runImport
	}
	o := &importOptions{}
	cmd := &cobra.Command{
		Use:   "import-v3 PATH...",
		Short: "Import legacy coding-agent sessions",
		Long: `Import session files of the legacy coding-agent formats, versions 1 to 3, into the
repository. In a folder every *.jsonl file counts; - is stdin. The source is never
touched, a file that was imported before is skipped, and a broken one is named by
line and byte offset and stops no other; with --salvage what is readable of it is
kept.

"discarded" counts the records that become no entry of the tree: changes of model
and settings, labels, names and the like. Labels, names and costs are kept beside
the tree.

--on-exists replace imports a session anew, from a longer source or another one of its
id. One that was continued, named or rewritten here since its import is never replaced.

--manifest makes a long batch resumable: FILE gets a line of JSON for each source as
it ends, with its path, size, time and digest, its status and its session. A run
with the same FILE passes over the sources that are unchanged since and whose session
is in the repository, without reading them and whatever --on-exists says; those that
failed are tried again. Stdin is not remembered.` +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usagef("which files? Name at least one PATH")
			}
			o.paths = args
			scratch := f.withScratch()
			defer func() { err = errors.Join(err, scratch.Close()) }()
			if o.base, err = f.base("import-v3"); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.recursive, "recursive", false, "look into the folders of folders too")
	flags.StringVar(&o.backend, "backend", "", "how the sessions are stored, `BACKEND` sqlite or jsonl")
	// While some files wait for the disk, others keep the cores busy.
	flags.IntVar(&o.batch.Jobs, "jobs", 2*runtime.GOMAXPROCS(0), "handle `N` files at a time")
	flags.BoolVar(&o.batch.DryRun, "dry-run", false, "read and judge every file, write nothing")
	flags.StringVar(&o.onExists, "on-exists", string(v3import.OnExistsSkip), "what to do (`HOW`) with a session imported before: skip, fail or replace")
	flags.BoolVar(&o.batch.Strict, "strict", false, "refuse a file on any warning")
	flags.BoolVar(&o.batch.Salvage, "salvage", false, "read on past damage and keep what is readable")
	flags.StringVar(&o.manifest, "manifest", "", "remember in `FILE` which sources are done, and pass over those that it knows")
	flags.BoolVar(&o.batch.NewID, "new-id", false, "give every session a new id")
	return cmd
}

func (o *importOptions) check() error {
	switch v3import.OnExists(o.onExists) {
	case v3import.OnExistsSkip, v3import.OnExistsFail, v3import.OnExistsReplace:
		o.batch.OnExists = v3import.OnExists(o.onExists)
	default:
		return usagef("--on-exists %q: want skip, fail or replace", escapeLine(o.onExists))
	}
	if o.batch.Jobs < 1 {
		return usagef("--jobs must be 1 or more")
	}
	switch o.backend {
	case "":
		o.backend = o.config.backend
	case "sqlite", "jsonl":
	default:
		return usagef("--backend %q: want sqlite or jsonl", escapeLine(o.backend))
	}
	return nil
}

func runImport(ctx context.Context, o *importOptions) error {
	stdin, paths, remove, err := spoolStdin(o.paths, o.out.in)
	if err != nil {
		return err
	}
	defer remove()
	batch, done, err := o.open()
	if err != nil {
		return err
	}
	defer done()
	if !batch.DryRun {
		if err := o.repo.SweepDead(ctx); err != nil {
			return err
		}
	}
	found := v3import.Collect(paths, o.recursive)
	found.Sources = withoutFile(found.Sources, o.manifest)
	stdin.mark(found.Sources)
	for _, note := range found.Notes {
		o.out.note("note: %s", escapeLine(note))
	}
	look, bar := o.out.newProgress("look"), o.out.newProgress("import")
	batch.Looked = func(done, all int) {
		if look.count(done, all); done == all {
			look.end()
		}
	}
	batch.Progress = func(p v3import.Progress) { bar.bytes(p.BytesDone, p.Bytes) }
	batch.Done = func(item v3import.Item) {
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(func(d *object) { appendItem(d, stdin.named(item)) })
	}
	result, err := v3import.Import(ctx, o.repo, found.Sources, batch)
	bar.end()
	if err != nil {
		err = bySignal(ctx, err)
		if !cutShort(err) {
			return err
		}
		err = o.resumable(err)
	} else {
		for i, item := range result.Items {
			result.Items[i] = stdin.named(item)
		}
		err = importFailure(result.Items, batch.Salvage)
	}
	return o.out.result(err, func(d *object) {
		d.values("items", len(result.Items), func(i int) store.Appender { return result.Items[i] })
		d.object("totals", func(d *object) { writeTotals(d, result.Totals) })
	}, func(w io.Writer) error { return printImport(w, result) })
}

// resumable says how an import goes on that was cut short.
func (o *importOptions) resumable(err error) error {
	f := explain(err)
	switch {
	case o.manifest != "":
		return f.withHint("run it again with the same --manifest %s: it goes on with what is not done", quoteArg(o.manifest))
	case o.batch.OnExists == v3import.OnExistsSkip && !o.batch.NewID:
		return f.withHint("run it again: what was imported is skipped")
	}
	return f.withHint("run it again; with --manifest FILE from the start it would go on with what is not done")
}

// open is the batch as it is to run, with its manifest, which done closes.
func (o *importOptions) open() (batch v3import.BatchOptions, done func(), err error) {
	batch = o.batch
	batch.Backend, batch.Now = o.backend, o.now
	if o.manifest == "" {
		return batch, func() {}, nil
	}
	m, err := v3import.OpenManifest(fsx.OS{}, o.manifest, batch.DryRun)
	if wrong, ok := errors.AsType[*v3import.NoManifest](err); ok {
		f := usagef("--manifest: %s", escapeLine(wrong.Error()))
		f.details = func(d *object) {
			d.str("manifest", wrong.Path)
			d.int("line", wrong.Line)
		}
		return batch, nil, f
	}
	if err != nil {
		return batch, nil, err
	}
	batch.Manifest = m
	// Each line is durable when it is written: closing adds nothing.
	return batch, func() { _ = m.Close() }, nil
}

// withoutFile leaves out a file that may lie among the sources and is none.
func withoutFile(sources []v3import.Source, path string) []v3import.Source {
	stat, err := os.Stat(path)
	if path == "" || err != nil {
		return sources
	}
	return slices.DeleteFunc(sources, func(s v3import.Source) bool {
		if filepath.Base(s.Path) != filepath.Base(path) {
			return false
		}
		other, err := os.Stat(s.Path)
		return err == nil && os.SameFile(stat, other)
	})
}

func appendItem(d *object, item v3import.Item) {
	raw, err := item.AppendJSON(nil)
	d.fail(err)
	d.members(raw)
}

func writeTotals(d *object, t v3import.Totals) {
	d.int("files", int64(t.Files))
	d.int("imported", int64(t.Imported))
	d.int("skipped", int64(t.Skipped))
	d.int("failed", int64(t.Failed))
	d.int("entries", t.Entries)
	d.int("bytes", t.Bytes)
	d.float("seconds", t.Seconds)
	d.float("bytesPerSecond", t.BytesPerSecond)
}

// importFailure is what the batch ends with.
func importFailure(items []v3import.Item, salvaging bool) error {
	errs := make([]error, len(items))
	salvageable := false
	for i, item := range items {
		if item.Failure != nil {
			errs[i] = item.Failure
			salvageable = salvageable || item.Failure.Salvageable
		}
	}
	err := itemsFailure("files", errs)
	if !salvageable || salvaging {
		return err
	}
	return explain(err).withHint("--salvage reads on past damage and keeps what is readable")
}

// explainImport is a refused file as the outside sees it.
func explainImport(e *v3import.Failure) *failure {
	f := &failure{code: exitCorrupt, tag: e.Code, message: e.Error(), cause: e, details: func(o *object) {
		o.str("source", e.Path)
		o.int("line", e.Line)
		o.int("offset", e.Offset)
	}}
	switch e.Code {
	case v3import.CodeNewer:
		f.code = exitVersion
	case v3import.CodeStrict, v3import.CodeExists:
		f.code = exitRefused
	case v3import.CodeMissing:
		f.code = exitNotFound
	case v3import.CodeHeld:
		f.code = exitLocked
	case v3import.CodeIO:
		f.code = exitIO
	}
	return f
}

func printImport(w io.Writer, r *v3import.Result) error {
	p := &lines{w: w}
	for _, item := range r.Items {
		p.line("%-12s  %s%s", item.Status, escapeLine(item.Source), importDetail(item))
		for _, warning := range item.Warnings {
			p.line("              line %d: %s: %s", warning.Line, warning.Code, escapeLine(warning.Message))
		}
	}
	t := r.Totals
	p.line("%d files: %d imported, %d skipped, %d failed; %d entries, %d bytes in %.1f s", t.Files, t.Imported, t.Skipped, t.Failed, t.Entries, t.Bytes, t.Seconds)
	return p.err
}

func importDetail(item v3import.Item) string {
	if f := item.Failure; f != nil {
		place := ""
		if f.Placed() {
			place = fmt.Sprintf("line %d, byte %d: ", f.Line, f.Offset)
		}
		return "\n              " + place + escapeLine(f.Message)
	}
	detail := "  → " + item.Session
	if item.Status != v3import.StatusSkipped {
		detail += fmt.Sprintf(", %d entries, %d discarded", item.Entries, item.Discarded)
	}
	return detail
}
