package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/store"
)

type valueOptions struct {
	base
	session string
	address store.Address
	content string // JSON, - for stdin
	page    store.ListQuery
}

// valueVerb is one thing to do with application values and lists (spec §1.3).
type valueVerb struct {
	name    string
	short   string
	long    string
	content bool // a JSON argument follows the address
	page    bool // has the flags of a page
	run     func(context.Context, *valueOptions) error
}

func valueVerbs() []valueVerb {
	return []valueVerb{
		{name: "get", short: "Print a value", long: "Print the value at an address; one that is not there is not found (4).", run: runValueGet},
		{name: "set", short: "Set a value", long: "Set the value at an address to JSON, given as an argument or on stdin (-).", content: true, run: runValueSet},
		{name: "delete", short: "Remove a value", long: "Remove the value at an address, also when it is not there.", run: runValueDelete},
		{name: "scan", short: "Print the values below a prefix", long: "Print the values of a namespace whose key starts with the address's key.", run: runValueScan},
		{name: "append", short: "Add an element to a list", long: "Add JSON, given as an argument or on stdin (-), to the end of a list.", content: true, run: runValueAppend},
		{name: "read", short: "Print a page of a list", long: "Print a page of a list; next is the --cursor of the page behind it.", page: true, run: runValueRead},
		{name: "clear", short: "Remove a list", long: "Remove a list with all its elements, also when it is not there.", run: runValueClear},
	}
}

func newValueCmd(f *factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "value",
		Short: "Read and write an application's own values and lists",
		Long: `Read and write the values and lists that an application keeps in a session. An
ADDRESS is NAMESPACE or NAMESPACE/KEY, one line, and holds a value or a list, never
both. The namespaces pi, pi.* and drover.* are drover's own.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, v := range valueVerbs() {
		cmd.AddCommand(newValueVerbCmd(f, v, nil))
	}
	return cmd
}

func newValueVerbCmd(f *factory, v valueVerb, runF func(context.Context, *valueOptions) error) *cobra.Command {
	if runF == nil {
		runF = v.run
	}
	o := &valueOptions{}
	use, most := v.name+" SESSION ADDRESS", 2
	if v.content {
		use, most = use+" JSON", 3
	}
	cmd := &cobra.Command{
		Use:               use,
		Short:             v.short,
		Long:              v.long + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		Args:              maxArgs(most),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			session, address, err := sessionAndOne(f, args, "which value? Name its NAMESPACE/KEY")
			if err != nil {
				return err
			}
			o.session = session
			if o.address, err = parseAddress(address); err != nil {
				return err
			}
			if v.content {
				// What old files hold can still be read and removed.
				if at := strings.IndexFunc(address, unicode.IsControl); at >= 0 {
					return usagef("the address holds the control character %q", address[at])
				}
				if len(args) < 3 {
					return usagef("which content? Give JSON, or - for stdin")
				}
				o.content = args[2]
			}
			if o.page.Limit < 0 || o.page.Cursor < 0 {
				return usagef("--limit and --cursor must not be negative")
			}
			if o.base, err = f.base("value " + v.name); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	if v.page {
		flags := cmd.Flags()
		flags.Int64Var(&o.page.Cursor, "cursor", 0, "begin behind the element with this `SEQ`")
		flags.IntVar(&o.page.Limit, "limit", 0, fmt.Sprintf("at most `N` elements (default %d, at most %d)", store.DefaultListPage, store.MaxListPage))
		flags.BoolVar(&o.page.Descending, "descending", false, "the newest first")
	}
	return cmd
}

// parseAddress reads NAMESPACE[/KEY] and refuses what belongs to drover.
func parseAddress(s string) (store.Address, error) {
	namespace, key, _ := strings.Cut(s, "/")
	a := store.Address{Namespace: namespace, Key: key}
	if err := a.Check(); err != nil {
		return a, usagef("%v", err)
	}
	if a.Reserved() || a.Namespace == "drover" {
		return a, usagef("the namespace %q is drover's own", escapeLine(namespace))
	}
	return a, nil
}

func (o *valueOptions) value() store.Value[json.RawMessage] {
	return store.NewValue[json.RawMessage](o.address.Namespace, o.address.Key)
}

func (o *valueOptions) list() store.List[json.RawMessage] {
	return store.NewList[json.RawMessage](o.address.Namespace, o.address.Key)
}

func runValueGet(ctx context.Context, o *valueOptions) error {
	return o.withReader(ctx, o.session, func(_ store.Ref, r store.Reader) error {
		v, ok, err := r.Value(ctx, o.address)
		if err != nil {
			return err
		}
		if !ok {
			f := notFoundf("value_not_found", "there is no value at %s", escapeLine(o.address.String()))
			f.details = o.writeAddress
			return f
		}
		return o.out.result(nil, func(d *object) { writeValue(d, v) }, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, o.json(v.Value))
			return err
		})
	})
}

func (o *valueOptions) writeAddress(d *object) {
	d.str("namespace", o.address.Namespace)
	d.str("key", o.address.Key)
}

// json is a value as text: in a pipe as it is, JSON holds no line ends.
func (o *valueOptions) json(value json.RawMessage) string {
	if o.out.outTTY {
		return escapeLine(string(value))
	}
	return string(value)
}

func writeValue(d *object, v store.StoredValue) {
	d.str("namespace", v.Namespace)
	d.str("key", v.Key)
	d.raw("value", v.Value)
	d.int("seq", v.Seq)
}

func runValueScan(ctx context.Context, o *valueOptions) error {
	return o.withReader(ctx, o.session, func(_ store.Ref, r store.Reader) error {
		values, err := r.ScanValues(ctx, o.address)
		if err != nil {
			return err
		}
		return o.out.result(nil, func(d *object) {
			d.array("values", len(values), func(i int, d *object) { writeValue(d, values[i]) })
		}, func(w io.Writer) error {
			p := &lines{w: w}
			for _, v := range values {
				p.line("%s  %s", escapeLine(v.String()), o.json(v.Value))
			}
			return p.err
		})
	})
}

func runValueRead(ctx context.Context, o *valueOptions) error {
	return o.withReader(ctx, o.session, func(_ store.Ref, r store.Reader) error {
		elements, err := r.ReadList(ctx, o.address, o.page)
		if err != nil {
			return err
		}
		next, err := o.next(ctx, r, elements)
		if err != nil {
			return err
		}
		return o.out.result(nil, func(d *object) {
			d.array("elements", len(elements), func(i int, d *object) {
				d.int("seq", elements[i].Seq)
				d.raw("value", elements[i].Value)
			})
			d.optInt("next", next)
		}, func(w io.Writer) error {
			p := &lines{w: w}
			for _, e := range elements {
				p.line("%s", o.json(e.Value))
			}
			return p.err
		})
	})
}

// next is the cursor of the page behind this one, nil when there is none.
func (o *valueOptions) next(ctx context.Context, r store.Reader, page []store.ListElement) (*int64, error) {
	size, err := o.page.PageSize()
	if err != nil || len(page) < size {
		return nil, err
	}
	last := page[len(page)-1].Seq
	rest, err := r.ReadList(ctx, o.address, store.ListQuery{Cursor: last, Descending: o.page.Descending, Limit: 1})
	if err != nil || len(rest) == 0 {
		return nil, err
	}
	return &last, nil
}

func runValueSet(ctx context.Context, o *valueOptions) error {
	content, err := readJSON(o.out, "the content", o.content)
	if err != nil {
		return err
	}
	return o.change(ctx, func(c *owner.Client) error {
		return c.SetValue(ctx, o.address, content)
	}, func(t *store.Tree) error { return store.SetValue(ctx, t, o.value(), json.RawMessage(content)) })
}

func runValueDelete(ctx context.Context, o *valueOptions) error {
	return o.change(ctx, func(c *owner.Client) error {
		return c.DeleteValue(ctx, o.address)
	}, func(t *store.Tree) error { return store.DeleteValue(ctx, t, o.value()) })
}

func runValueClear(ctx context.Context, o *valueOptions) error {
	return o.change(ctx, func(c *owner.Client) error {
		return c.ClearList(ctx, o.address)
	}, func(t *store.Tree) error { return store.DeleteList(ctx, t, o.list()) })
}

func runValueAppend(ctx context.Context, o *valueOptions) error {
	content, err := readJSON(o.out, "the content", o.content)
	if err != nil {
		return err
	}
	request := o.newID()
	return o.change(ctx, func(c *owner.Client) error {
		_, err := c.AppendList(ctx, o.address, request, content)
		if errors.Is(err, owner.ErrGone) {
			// Elements have no ids of their own: a second one could not be told from
			// the first.
			f := &failure{code: exitIO, tag: "io", message: "the session's owner ended before it answered: whether the element was added is not known", cause: err}
			return f.withHint("look with `drover value read`")
		}
		return err
	}, func(t *store.Tree) error { return store.AppendList(ctx, t, o.list(), json.RawMessage(content)) })
}

// change writes, and answers with the address.
func (o *valueOptions) change(ctx context.Context, remote func(*owner.Client) error, local func(*store.Tree) error) error {
	ref, err := o.target(ctx, o.session)
	if err != nil {
		return err
	}
	err = o.reach(ctx, ref, remote, func(s *store.Session) error {
		return firstOf(local(s.View(store.MainLane)), s.Close())
	})
	if err != nil {
		return err
	}
	return o.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		o.writeAddress(d)
	}, nil)
}
