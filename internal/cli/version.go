package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/store"
)

type versionOptions struct {
	out *printer
}

func newVersionCmd(f *factory, runF func(context.Context, *versionOptions) error) *cobra.Command {
	if runF == nil {
		runF = runVersion
	}
	return &cobra.Command{
		Use:   "version",
		Short: "Tell the version of this binary",
		Long:  "Tell the version of this binary and of the sessions it writes." + exitHelp(exitOK, exitUsage),
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := f.plainOut()
			if err != nil {
				return err
			}
			return runF(cmd.Context(), &versionOptions{out: out})
		},
	}
}

func runVersion(_ context.Context, o *versionOptions) error {
	b := readBuild()
	return o.out.result(nil, func(d *object) {
		d.str("version", b.version)
		d.optStr("revision", b.revision)
		d.bool("modified", b.modified)
		d.str("go", runtime.Version())
		d.str("platform", runtime.GOOS+"/"+runtime.GOARCH)
		d.int("format", store.Format)
		d.int("storageVersion", store.StorageVersion)
	}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "drover %s\nrevision %s\n%s %s/%s\nsession format %d, storage version %d\n",
			b.version, b.describe(), runtime.Version(), runtime.GOOS, runtime.GOARCH, store.Format, store.StorageVersion)
		return err
	})
}

// build is what the linker knows of this binary.
type build struct {
	version  string
	revision string
	modified bool
}

func (b build) describe() string {
	switch {
	case b.revision == "":
		return "unknown"
	case b.modified:
		return b.revision + " (modified)"
	}
	return b.revision
}

func readBuild() build {
	b := build{version: "devel"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		}
	}
	return b
}
