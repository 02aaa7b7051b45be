package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/tool"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == tool.SupervisorArg {
		os.Exit(tool.SupervisorMain(os.Args[2:])) // a tool's command re-executes this binary
	}
	testscript.Main(m, map[string]func(){
		"drover":      func() { os.Exit(int(run(strictFactory(), os.Args[1:]))) },
		"drover-kill": killMain,
		answerChild:   answerMain,
		"mcpserver":   mcpServerMain,
	})
}

// aheadVariable says by how much the clock of a process is ahead, in tests that do not
// wait.
const aheadVariable = "DROVER_TEST_AHEAD"

// strictFactory makes a process whose models refuse requests that no provider
// would take.
func strictFactory() *factory {
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "DROVER_TEST_") // of the tests, and strange to a process
	})
	f := newFactory(env, newStreams(os.Stdin, os.Stdout, os.Stderr))
	if ahead, err := time.ParseDuration(os.Getenv(aheadVariable)); err == nil {
		f.now = func() int64 { return store.SystemNow() + ahead.Milliseconds() }
	}
	models := f.models
	f.models = func() effect.Models {
		return enginetest.Strict(models(), func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	}
	return f
}

// TestScripts runs every script below testdata/script, each in a folder of its
// own and with the real binary, so that exit codes and streams are real.
func TestScripts(t *testing.T) {
	var files []string
	err := filepath.WalkDir("testdata/script", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".txtar") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d scripts: %v", len(files), err)
	}
	examples, err := filepath.Abs("../../docs/examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			env.Setenv("DROVER_REPO", filepath.Join(env.WorkDir, "repo"))
			env.Setenv("DROVER_RETRY_BASE_DELAY", "1ms")
			serveVendors(env)
			env.Setenv("EXAMPLES", examples)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "field": cmdField, "setfield": cmdSetField, "setout": cmdSetOut, "count": cmdCount, "until": cmdUntil,
			"sql": cmdSQL, "cutoff": cmdCutOff, "badpage": cmdBadPage, "age": cmdAge,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// exits CODE PROGRAM ARG...: runs a program and wants this very exit code.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := status(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("%s exits with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func status(ts *testscript.TestScript, err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// field FILE PATH WANT: the value at a dotted path of the JSON in a file is
// WANT, strings decoded; each line of ndjson is one element of a list.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: field FILE PATH WANT")
	}
	got, err := lookupField(ts.ReadFile(args[0]), args[1])
	if neg {
		if err == nil && got == args[2] {
			ts.Fatalf("%s is %q", args[1], got)
		}
		return
	}
	ts.Check(err)
	if got != args[2] {
		ts.Fatalf("%s is %q, want %q", args[1], got, args[2])
	}
}

// setfield VARIABLE FILE PATH: keeps a value in the environment.
func cmdSetField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: setfield VARIABLE FILE PATH")
	}
	got, err := lookupField(ts.ReadFile(args[1]), args[2])
	ts.Check(err)
	ts.Setenv(args[0], got)
}

// setout VARIABLE: keeps the last output in the environment.
func cmdSetOut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: setout VARIABLE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// count FILE PATH N: the array at a path has N elements.
func cmdCount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: count FILE PATH N")
	}
	raw, err := lookupField(ts.ReadFile(args[0]), args[1])
	ts.Check(err)
	n := 0
	ts.Check(rawjson.ElementsFunc([]byte(raw), func(int, int) bool { n++; return true }))
	if strconv.Itoa(n) != args[2] {
		ts.Fatalf("%s has %d elements, want %s", args[1], n, args[2])
	}
}

// until PATH WANT PROGRAM ARG...: runs a program again and again until its JSON
// output says so.
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: until PATH WANT PROGRAM ARG...")
	}
	for range 2000 {
		if ts.Exec(args[2], args[3:]...) == nil {
			if got, err := lookupField(ts.ReadFile("stdout"), args[0]); err == nil && got == args[1] {
				return
			}
		}
	}
	ts.Fatalf("%s never became %q", args[0], args[1])
}

// lookupField finds a value: names lead into objects, numbers into arrays,
// negative ones from the end, and "lines" first means the lines of ndjson.
func lookupField(text, path string) (string, error) {
	raw := []byte(strings.TrimSpace(text))
	steps := strings.Split(path, ".")
	if steps[0] == "lines" {
		raw = []byte("[" + strings.ReplaceAll(string(raw), "\n", ",") + "]")
		steps = steps[1:]
	} else if strings.Contains(string(raw), "\n") {
		return "", fmt.Errorf("more than one line where one document was expected: %s", text)
	}
	if err := rawjson.Valid(raw); err != nil {
		return "", fmt.Errorf("no JSON: %w: %s", err, text)
	}
	for _, step := range steps {
		switch rawjson.KindOf(raw) {
		case rawjson.Object:
			value, ok := rawjson.Get(raw, step)
			if !ok {
				return "", fmt.Errorf("%s: no member %q in %.200s", path, step, raw)
			}
			raw = value
		case rawjson.Array:
			var all [][]byte
			for element := range rawjson.Elements(raw) {
				all = append(all, slices.Clone(element))
			}
			i, err := strconv.Atoi(step)
			if i < 0 {
				i += len(all)
			}
			if err != nil || i < 0 || i >= len(all) {
				return "", fmt.Errorf("%s: no element %q among %d", path, step, len(all))
			}
			raw = all[i]
		default:
			return "", fmt.Errorf("%s: nothing below %.100s", path, raw)
		}
	}
	if rawjson.KindOf(raw) == rawjson.String {
		return rawjson.Unquote(raw)
	}
	return string(raw), nil
}

// The completion scripts in the repository are those of this binary.
func TestCompletionsAreCurrent(t *testing.T) {
	for shell, file := range map[string]string{"bash": "drover.bash", "zsh": "_drover", "fish": "drover.fish", "powershell": "drover.ps1"} {
		want, err := os.ReadFile(filepath.Join("../../completions", file))
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		if code := Main([]string{"completion", shell}, []string{"HOME=/"}, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("%s: exit code %d: %s", shell, code, stderr.String())
		}
		if stdout.String() != string(want) {
			t.Errorf("completions/%s is stale: run make completions", file)
		}
	}
}
