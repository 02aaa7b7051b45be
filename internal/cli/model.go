package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/catalogue"
	"github.com/drover-run/drover/pkg/model/scripted"
)

func newModelCmd(f *factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "List the models, with limits and prices",
		Long: `A model is named PROVIDER/ID. Those of the vendors are described in the binary; the
configuration describes others, and corrects what has changed since
("drover help configuration"). One that nobody described can be used all the same.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newModelListCmd(f, nil), newModelShowCmd(f, nil))
	return cmd
}

// modelItem is one model as a command tells of it.
type modelItem struct {
	provider string
	unusable string
	catalogue.Entry
}

func (m modelItem) ref() message.ModelRef {
	return message.ModelRef{Provider: m.provider, ModelID: m.ID}
}

// knownModels are the models that are described, by provider and id.
func (f *factory) knownModels() ([]modelItem, error) {
	endpoints, err := f.endpoints()
	if err != nil {
		return nil, err
	}
	var all []modelItem
	for _, e := range endpoints {
		for _, id := range e.models.IDs() {
			all = append(all, modelItem{e.name, e.obstacle.what, e.models.Entry(id)})
		}
	}
	// Those that are scripts are files, which only echo needs not be.
	for _, id := range scripted.New(scripted.Options{}).Models() {
		item, err := f.scriptedModel(id)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	slices.SortStableFunc(all, func(a, b modelItem) int { return cmp.Compare(a.provider, b.provider) })
	return all, nil
}

// scriptedModel describes a model that is a script.
func (f *factory) scriptedModel(id string) (modelItem, error) {
	m, err := f.models().Resolve(message.ModelRef{Provider: scripted.Name, ModelID: id})
	if err != nil {
		return modelItem{}, err
	}
	info := m.Info()
	return modelItem{provider: scripted.Name, Entry: catalogue.Entry{
		Spec: model.Spec{
			ID: id, Name: id, ContextWindow: info.ContextWindow, MaxTokens: info.MaxTokens, Thinking: info.Thinking, Images: true,
		},
	}}, nil
}

type modelListOptions struct {
	out    *printer
	models func() ([]modelItem, error)
	// unlisted are the providers that take models and describe none.
	unlisted func() []string
	usable   bool
}

func newModelListCmd(f *factory, runF func(context.Context, *modelListOptions) error) *cobra.Command {
	if runF == nil {
		runF = runModelList
	}
	o := &modelListOptions{models: f.knownModels, unlisted: f.unlistedProviders}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the models that are described",
		Long: `List the models that are described: the size of the window and of an answer in
tokens, the thinking levels, and the prices of a million tokens of input, of output
and of what is read from the cache, in US dollars.
Nothing is asked over the network.` + exitHelp(exitOK, exitUsage, exitIO),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.out, err = f.out(); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.usable, "usable", false, "only those that requests can be made to now")
	return cmd
}

func runModelList(_ context.Context, o *modelListOptions) error {
	all, err := o.models()
	if err != nil {
		return err
	}
	if o.usable {
		all = slices.DeleteFunc(all, func(m modelItem) bool { return m.unusable != "" })
	}
	usable := 0
	for _, m := range all {
		if m.unusable == "" {
			usable++
		}
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(m.write)
	}
	for _, name := range o.unlisted() {
		o.out.note("note: %s can be used, too, with the models of its server; providers.%s.models can describe them", escapeLine(name), escapeLine(name))
	}
	return o.out.result(nil, func(d *object) {
		d.array("items", len(all), func(i int, d *object) { all[i].write(d) })
		d.object("totals", func(d *object) {
			d.int("models", int64(len(all)))
			d.int("usable", int64(usable))
		})
	}, func(w io.Writer) error {
		t := table{header: []string{"model", "usable", "window", "answer", "images", "input", "output", "cached", "thinking"}}
		for _, m := range all {
			t.rows = append(t.rows, []string{
				escapeLine(m.ref().String()), yesNo(m.unusable == ""), tokens(m.ContextWindow), tokens(m.MaxTokens), yesNo(m.Images),
				dollars(m.Prices.Input), dollars(m.Prices.Output), dollars(m.Prices.CacheRead), thinkingLevels(m.Thinking),
			})
		}
		return t.render(w, o.out.width)
	})
}

// write is the item of a list, and the document of one model.
func (m modelItem) write(d *object) {
	d.str("model", m.ref().String())
	d.str("name", m.Name)
	d.str("provider", m.provider)
	d.bool("usable", m.unusable == "")
	d.optStr("reason", m.unusable)
	d.int("contextWindow", m.ContextWindow)
	d.int("maxTokens", m.MaxTokens)
	levels := make([]string, len(m.Thinking))
	for i, l := range m.Thinking {
		levels[i] = string(l)
	}
	d.strs("thinking", levels)
	d.bool("images", m.Images)
	if m.Prices == (model.Prices{}) {
		d.null("prices")
	} else {
		d.object("prices", func(d *object) { writePrices(d, m.Prices) })
	}
	d.bool("assumed", m.Assumed)
	d.optStr("source", m.Source)
	d.optStr("asOf", m.AsOf)
	d.bool("verified", m.Verified)
	d.optStr("note", m.Note)
}

func writePrices(d *object, p model.Prices) {
	d.float("input", p.Input)
	d.float("output", p.Output)
	d.float("cacheRead", p.CacheRead)
	d.float("cacheWrite", p.CacheWrite)
	d.float("cacheWrite1h", p.CacheWrite1h)
	if p.Long != nil {
		d.int("longAbove", p.LongAbove)
		d.object("long", func(d *object) { writePrices(d, *p.Long) })
	}
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// tokens is a number of tokens in the unit that vendors give it in.
func tokens(n int64) string {
	switch {
	case n >= 1_000_000 && n%10_000 == 0:
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64) + "M"
	case n >= 1000 && n%1000 == 0:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

func dollars(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func thinkingLevels(levels []message.ThinkingLevel) string {
	if len(levels) == 0 {
		return "none"
	}
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = string(l)
	}
	return strings.Join(names, " ")
}

type modelShowOptions struct {
	out *printer
	f   *factory
	ref message.ModelRef
}

func newModelShowCmd(f *factory, runF func(context.Context, *modelShowOptions) error) *cobra.Command {
	if runF == nil {
		runF = runModelShow
	}
	o := &modelShowOptions{f: f}
	return &cobra.Command{
		Use:   "show PROVIDER/ID",
		Short: "Show what is known of a model, and whether it can be used",
		Long: `Show what is known of one model, where that comes from, and why no request can be
made to it if that is so. Of a model that nobody described it shows what is assumed.
Nothing is asked over the network.` + exitHelp(exitOK, exitUsage, exitNotFound, exitIO),
		Args:              oneModel,
		ValidArgsFunction: completeModels(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.ref, err = parseModel("MODEL", args[0]); err != nil {
				return err
			}
			if o.out, err = f.out(); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
}

func oneModel(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("which model? Give it as PROVIDER/ID").withHint("`drover model list` lists those that are described")
	}
	return maxArgs(1)(cmd, args)
}

func runModelShow(_ context.Context, o *modelShowOptions) error {
	m, err := o.f.modelOf(o.ref)
	if err != nil {
		return err
	}
	return o.out.result(nil, m.write, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s  %s", escapeLine(m.ref().String()), escapeLine(m.Name))
		p.line("usable    %s", usability(m.unusable))
		p.line("window    %d tokens, of which an answer has %d at most", m.ContextWindow, m.MaxTokens)
		p.line("thinking  %s", thinkingLevels(m.Thinking))
		p.line("images    %s", yesNo(m.Images))
		p.line("prices    %s", priceLine(m.Prices))
		if m.Prices.Long != nil {
			p.line("          with a prompt of more than %d tokens: %s", m.Prices.LongAbove, priceLine(*m.Prices.Long))
		}
		p.line("known by  %s", escapeLine(m.origin()))
		if m.Note != "" {
			p.line("note      %s", m.Note)
		}
		return p.err
	})
}

func usability(reason string) string {
	if reason == "" {
		return "yes"
	}
	return "no: " + escapeLine(reason)
}

func priceLine(p model.Prices) string {
	if p == (model.Prices{}) {
		return "none known; costs count as 0"
	}
	return fmt.Sprintf("$%s input, $%s output, $%s from the cache, $%s into it ($%s for an hour), for a million tokens",
		dollars(p.Input), dollars(p.Output), dollars(p.CacheRead), dollars(p.CacheWrite), dollars(p.CacheWrite1h))
}

// origin says where the description comes from.
func (m modelItem) origin() string {
	switch {
	case m.provider == scripted.Name:
		return "the script"
	case m.Assumed:
		return "nobody; these are assumptions"
	case m.Source == catalogue.Configured:
		return "the configuration"
	case m.Verified:
		return m.Source + ", compared " + m.AsOf
	}
	return m.Source + ", not compared with it; as of " + m.AsOf
}

// parseModel reads PROVIDER/ID. Of an id alone it knows whose it is, when it is one
// of the vendors'.
func parseModel(what, s string) (message.ModelRef, error) {
	ref, err := message.ParseModelRef(s)
	if err == nil {
		return ref, nil
	}
	f := usagef("%s: %q: want PROVIDER/ID", what, escapeLine(s))
	for _, vendor := range []string{catalogue.Anthropic, catalogue.OpenAI} {
		if slices.Contains(catalogue.New(vendor, nil).IDs(), s) {
			return ref, f.withHint("the nearest is %s/%s", vendor, s)
		}
	}
	return ref, f.withHint("`drover model list` lists models by their whole names")
}

// modelOf describes any model of a provider that there is.
func (f *factory) modelOf(ref message.ModelRef) (modelItem, error) {
	endpoints, err := f.endpoints()
	if err != nil {
		return modelItem{}, err
	}
	for _, e := range endpoints {
		if e.name == ref.Provider {
			return modelItem{e.name, e.obstacle.what, e.models.Entry(ref.ModelID)}, nil
		}
	}
	if ref.Provider == scripted.Name {
		m, err := f.scriptedModel(ref.ModelID)
		return m, unknownModel(err)
	}
	_, err = f.models().Resolve(ref)
	return modelItem{}, unknownModel(err)
}

// unknownModel is a model that a command was to tell of, and that is not there.
func unknownModel(err error) error {
	e, ok := errors.AsType[*effect.UnknownModel](err)
	if !ok {
		return err
	}
	f := notFoundf("unknown_model", "there is no model %s", escapeLine(e.Ref.String()))
	f.cause = err
	if e.Reason != "" {
		f.message += ": " + e.Reason
	}
	f.details = func(d *object) { d.strs("nearest", e.Nearest) }
	if len(e.Nearest) > 0 {
		return f.withHint("the nearest is %s", escapeLine(e.Nearest[0]))
	}
	missing := &engine.MissingIdentities{Missing: op.Missing{Model: e.Ref.String()}, Err: e}
	return f.withHint("%s", missingHint(missing))
}

// completeModels completes a model with those that are described.
func completeModels(f *factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if f.flags.collect(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := f.knownModels()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var refs []string
		for _, m := range all {
			if ref := m.ref().String(); strings.HasPrefix(ref, typed) {
				refs = append(refs, ref+"\t"+m.Name)
			}
		}
		return refs, cobra.ShellCompDirectiveNoFileComp
	}
}
