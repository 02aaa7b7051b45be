package cli

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/tool/program"
)

// Every field of a program is explained, in the order of the description.
func TestProgramFieldsAreExplained(t *testing.T) {
	var fields, explained []string
	for f := range reflect.TypeFor[programConfig]().Fields() {
		fields = append(fields, f.Tag.Get("yaml"))
	}
	for _, r := range programRows() {
		explained = append(explained, r.key)
	}
	if diff := cmp.Diff(fields, explained); diff != "" {
		t.Error(diff)
	}
}

// What the help shows is a configuration, and means what it says.
func TestProgramExample(t *testing.T) {
	file, err := parseConfig("config.yaml", []byte(programExample))
	if err != nil {
		t.Fatal(err)
	}
	read, err := readPrograms(sources{file: file, dir: "/etc/drover"})
	if err != nil {
		t.Fatal(err)
	}
	want := []program.Config{{
		Name: "run_tests", Description: "Run the tests of one package, or of all, and return what fails.",
		Schema: []byte(`{"type":"object","properties":{"package":{"type":"string","pattern":"^\\./","description":"such as ./pkg/store"}}}`),
		Argv:   []string{"/etc/drover/run-tests"}, ReplaySafe: true, Timeout: 10 * 60e9,
	}}
	if diff := cmp.Diff(want, read.all); diff != "" {
		t.Error(diff)
	}
}

func TestWrap(t *testing.T) {
	long := "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
	if got, want := wrap(long, "  "), "  one two three four five six seven eight nine ten eleven twelve thirteen fourteen\n  fifteen"; got != want {
		t.Errorf("%q", got)
	}
	if got := wrap("", "  "); got != "  " {
		t.Errorf("%q", got)
	}
}
