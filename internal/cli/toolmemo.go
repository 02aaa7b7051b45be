package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/tool/program"
)

func newToolCmd(f *factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tool",
		Short: "For programs that are called as tools",
		Long:  "For programs that are called as tools: `drover help programs` tells about them.",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	memo := &cobra.Command{
		Use:   "memo",
		Short: "Keep what a tool call has done, for when it runs again",
		Long: `Keep what a tool call has done. A memo belongs to the call that this process was
started by, is in the session when "set" returns, and is there when drover was
killed and the call runs again. It goes with the call's end.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	memo.AddCommand(newMemoGetCmd(f, nil), newMemoSetCmd(f, nil))
	cmd.AddCommand(memo)
	return cmd
}

type memoOptions struct {
	out     *printer
	env     func(string) string
	name    string
	content string // JSON, - for stdin
}

// take reads the name. The configuration and the environment of whoever called
// drover do not change what a program is answered.
func (o *memoOptions) take(f *factory, args []string) error {
	form := formatText
	if typed, given := f.flags.given["output"]; given {
		parsed, err := parseFormat(typed)
		if err != nil {
			return usagef("--output: %q: %v", escapeLine(typed), err)
		}
		form = parsed
	}
	o.out, o.env = f.printerFor(form), f.env
	if len(args) == 0 {
		return usagef("which memo? Give its name")
	}
	o.name = args[0]
	if err := program.CheckMemoName(o.name); err != nil {
		return usagef("%s", escapeLine(err.Error()))
	}
	return nil
}

func newMemoGetCmd(f *factory, runF func(context.Context, *memoOptions) error) *cobra.Command {
	if runF == nil {
		runF = runMemoGet
	}
	o := &memoOptions{}
	return &cobra.Command{
		Use:   "get NAME",
		Short: "Print a memo",
		Long:  "Print the JSON of a memo of this tool call; one that is not set is not found (4)." + exitHelp(exitOK, exitUsage, exitNotFound, exitRefused),
		Args:  maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.take(f, args); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
}

func newMemoSetCmd(f *factory, runF func(context.Context, *memoOptions) error) *cobra.Command {
	if runF == nil {
		runF = runMemoSet
	}
	o := &memoOptions{}
	return &cobra.Command{
		Use:   "set NAME JSON",
		Short: "Set a memo",
		Long: fmt.Sprintf("Set a memo of this tool call to JSON of at most %d KiB, given as an argument or on stdin (-).\nIt is durable when the command returns.", program.MaxMemo>>10) +
			exitHelp(exitOK, exitUsage, exitRefused),
		Args: maxArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.take(f, args); err != nil {
				return err
			}
			if len(args) < 2 {
				return usagef("which content? Give JSON, or - for stdin")
			}
			o.content = args[1]
			return runF(cmd.Context(), o)
		},
	}
}

func runMemoGet(ctx context.Context, o *memoOptions) error {
	value, found, err := program.GetMemo(ctx, o.env, o.name)
	if err != nil {
		return memoRefusal(err)
	}
	if !found {
		return notFoundf("memo_not_found", "there is no memo %q", escapeLine(o.name))
	}
	return o.out.result(nil, func(d *object) {
		d.str("name", o.name)
		d.raw("value", value)
	}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, string(value))
		return err
	})
}

func runMemoSet(ctx context.Context, o *memoOptions) error {
	raw, err := readJSON(o.out, "the content", o.content)
	if err != nil {
		return err
	}
	value, err := oneLine(raw)
	if err != nil {
		return err
	}
	if len(value) > program.MaxMemo {
		return usagef("the content has %d bytes; a memo has %d at most", len(value), program.MaxMemo)
	}
	if err := program.SetMemo(ctx, o.env, o.name, value); err != nil {
		return memoRefusal(err)
	}
	return o.out.result(nil, func(d *object) { d.str("name", o.name) }, nil)
}

// oneLine is JSON without the white space between its parts.
func oneLine(raw []byte) (json.RawMessage, error) {
	line, err := rawjson.Compact(nil, raw)
	if err != nil {
		return nil, fmt.Errorf("compact JSON: %w", err)
	}
	return line, nil
}

// memoRefusal explains why a memo could not be reached.
func memoRefusal(err error) error {
	if errors.Is(err, program.ErrNoCall) {
		f := &failure{code: exitRefused, tag: "no_tool_call", message: err.Error(), cause: err}
		return f.withHint("memos are for programs that drover calls as tools, while the call runs")
	}
	if refused, ok := errors.AsType[*program.MemoError](err); ok {
		return &failure{code: exitRefused, tag: "memo_refused", message: refused.Msg, cause: err}
	}
	return err
}
