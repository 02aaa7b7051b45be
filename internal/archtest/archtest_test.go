package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/drover-run/drover/"

// anyone marks a package that every other one may import.
const anyone = "*"

// own says which of our packages a package may import, beside those that anyone
// may. A package that is not listed may not exist.
var own = map[string][]string{
	"cmd/drover":            {"internal/cli"},
	"internal/archtest":     {},
	"internal/cli":          {anyone},
	"internal/fsx":          {},
	"internal/owner":        {"pkg/engine", "pkg/store", "pkg/message", "internal/fsx"},
	"internal/fsx/fsxtest":  {"internal/fsx"},
	"internal/rawjson":      {},
	"internal/redact":       {},
	"internal/secret":       {},
	"internal/visible":      {},
	"internal/resource":     {"internal/yamlpos"},
	"internal/yamlpos":      {},
	"pkg/message":           {},
	"pkg/store":             {"pkg/message", "pkg/telemetry", "internal/fsx"},
	"pkg/store/memory":      {"pkg/store", "pkg/message", "internal/fsx"},
	"pkg/store/jsonl":       {"pkg/store", "pkg/message", "pkg/store/memory", "pkg/v3import", "internal/fsx"},
	"pkg/store/sqlite":      {"pkg/store", "pkg/message", "internal/fsx"},
	"pkg/store/storetest":   {"pkg/store", "pkg/store/memory", "pkg/message", "internal/fsx", "internal/fsx/fsxtest", "internal/bulk"},
	"pkg/export":            {"pkg/store", "pkg/message", "internal/redact", "internal/visible"},
	"pkg/search":            {"pkg/store", "pkg/message", "internal/fsx"},
	"pkg/v3import":          {"pkg/store", "pkg/message", "internal/fsx"},
	"pkg/migrate":           {"pkg/store"},
	"pkg/rewrite":           {"pkg/store", "pkg/message", "internal/redact"},
	"pkg/repair":            {"pkg/store", "pkg/message", "internal/fsx"},
	"pkg/engine":            {"pkg/engine/op", "pkg/engine/effect", "pkg/store", "pkg/message", "pkg/telemetry"},
	"pkg/engine/op":         {"pkg/store", "pkg/message"},
	"pkg/engine/effect":     {"pkg/message"},
	"pkg/engine/enginetest": {"pkg/engine", "pkg/engine/op", "pkg/engine/effect", "pkg/store", "pkg/store/memory", "pkg/message", "pkg/store/storetest"},
	"pkg/model":             {"pkg/message", "pkg/engine/effect"},
	"pkg/model/scripted":    {"pkg/message", "pkg/engine/effect", "pkg/model", "internal/fsx", "internal/yamlpos"},
	"pkg/model/answer":      {"pkg/model", "pkg/message", "pkg/engine/effect", "internal/secret"},
	"pkg/model/anthropic":   {"pkg/message", "pkg/engine/effect", "pkg/model", "pkg/model/answer"},
	"pkg/model/catalogue":   {"pkg/message", "pkg/model"},
	"pkg/model/openai":      {"pkg/message", "pkg/engine/effect", "pkg/model", "pkg/model/answer"},
	"pkg/model/transport":   {"pkg/message", "pkg/model", "internal/fsx", "internal/secret"},
	"pkg/hook":              {"pkg/engine", "pkg/engine/effect", "pkg/engine/op", "pkg/message", "pkg/tool", "internal/fsx"},
	"internal/otel":         {"pkg/telemetry"},
	"pkg/tool":              {"pkg/message", "pkg/engine/effect", "internal/fsx"},
	"pkg/tool/mcp":          {"pkg/message", "pkg/engine/effect", "pkg/tool", "internal/fsx", "internal/secret"},
	"pkg/tool/program":      {"pkg/message", "pkg/engine/effect", "pkg/tool", "internal/fsx"},
	"pkg/subsession":        {"pkg/engine", "pkg/engine/effect", "pkg/store", "pkg/message", "internal/fsx"},
	"pkg/telemetry":         {},
	"pkg/model/modeltest":   {"pkg/model", "pkg/message", "pkg/engine/effect", "pkg/model/transport"},

	"internal/bulk":              {"pkg/store", "pkg/message"},
	"internal/bulk/makesessions": {"internal/bulk", "pkg/store", "pkg/store/jsonl", "pkg/store/sqlite"},
}

// shared may be imported by every package of ours.
var shared = []string{"internal/rawjson"}

// testOnly may be imported by tests and by each other only.
var testOnly = []string{"internal/bulk", "internal/bulk/makesessions", "pkg/store/storetest", "pkg/engine/enginetest", "pkg/model/modeltest", "internal/fsx/fsxtest"}

// thirdParty says which packages may import a module's packages.
var thirdParty = map[string][]string{
	"github.com/anthropics/anthropic-sdk-go/v2": {"pkg/model/anthropic"},
	"github.com/openai/openai-go/v3":            {"pkg/model/openai"},
	"github.com/modelcontextprotocol/go-sdk":    {"pkg/tool/mcp"},
	"go.opentelemetry.io/otel":                  {"internal/otel"},
	"github.com/aymanbagabas/go-udiff":          {"pkg/tool"},
	"github.com/expr-lang/expr":                 {"pkg/rewrite"},
	"github.com/gofrs/flock":                    {"internal/fsx", "pkg/store/jsonl"},
	"github.com/google/jsonschema-go":           {"pkg/tool"},
	"github.com/google/renameio/v2":             {"internal/fsx", "pkg/store/jsonl", "pkg/store/sqlite"},
	"github.com/google/uuid":                    {"pkg/store", "pkg/store/sqlite", "pkg/store/jsonl"},
	"github.com/olekukonko/tablewriter":         {"internal/cli"},
	"github.com/spf13/cobra":                    {"internal/cli"},
	"github.com/spf13/pflag":                    {"internal/cli"},
	"github.com/spf13/viper":                    {"internal/cli"},
	"github.com/vbauerster/mpb/v8":              {"internal/cli"},
	"go.yaml.in/yaml/v3":                        {"internal/cli", "internal/resource", "internal/yamlpos", "pkg/model/scripted"},
	"golang.org/x/sync":                         {"internal/cli", "pkg/store", "pkg/v3import"},
	"golang.org/x/sys":                          {"internal/fsx", "pkg/store/jsonl", "pkg/store/sqlite"},
	"golang.org/x/term":                         {"internal/cli"},
	"modernc.org/sqlite":                        {"pkg/store/sqlite", "pkg/search"},

	"github.com/google/go-cmp": testOnly,
	"pgregory.net/rapid":       testOnly,
}

// pure lists what a package of decisions must not import: where it could look at
// a clock, wait, or touch the world.
var pure = map[string][]string{
	"pkg/engine/op": {"context", "time", "sync", "sync/atomic", "os", "math/rand", "math/rand/v2", "crypto/rand", "io", "net", "os/exec"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found no package of ours")
	}
	return all
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		name := p.name()
		allowed, known := own[name]
		if !known {
			t.Errorf("package %s is not in the table of the architecture", name)
			continue
		}
		for _, path := range p.Imports {
			switch {
			case strings.HasPrefix(path, module):
				if why := refuseOwn(name, strings.TrimPrefix(path, module), allowed); why != "" {
					t.Errorf("%s imports %s: %s", name, path, why)
				}
			case strings.Contains(strings.Split(path, "/")[0], "."):
				if why := refuseThirdParty(name, path); why != "" {
					t.Errorf("%s imports %s: %s", name, path, why)
				}
			case slices.Contains(pure[name], path):
				t.Errorf("%s imports %s: it decides, and must not see the world", name, path)
			}
		}
	}
}

// refuseOwn says why a package must not import another of ours, "" when it may.
func refuseOwn(importer, imported string, allowed []string) string {
	switch {
	case slices.Contains(testOnly, imported) && !slices.Contains(testOnly, importer):
		return "it is for tests"
	case imported == "internal/cli" && importer != "cmd/drover":
		return "only cmd/drover may"
	case slices.Contains(shared, imported), slices.Contains(allowed, anyone), slices.Contains(allowed, imported):
		return ""
	}
	return "the architecture does not allow it"
}

// refuseThirdParty says why a package must not import a module's package.
func refuseThirdParty(importer, path string) string {
	for mod, allowed := range thirdParty {
		if path != mod && !strings.HasPrefix(path, mod+"/") {
			continue
		}
		if slices.Contains(allowed, importer) {
			return ""
		}
		return "only " + strings.Join(allowed, ", ") + " may"
	}
	return "the module is not on the list"
}

// TestLawBites checks that the law refuses what it is there to refuse.
func TestLawBites(t *testing.T) {
	cases := map[string]string{
		"op imports the engine":       refuseOwn("pkg/engine/op", "pkg/engine", own["pkg/engine/op"]),
		"the engine imports sqlite":   refuseOwn("pkg/engine", "pkg/store/sqlite", own["pkg/engine"]),
		"cli imports the suite":       refuseOwn("internal/cli", "pkg/store/storetest", own["internal/cli"]),
		"the store imports cli":       refuseOwn("pkg/store", "internal/cli", own["pkg/store"]),
		"the store imports cobra":     refuseThirdParty("pkg/store", "github.com/spf13/cobra"),
		"an unlisted module":          refuseThirdParty("internal/cli", "github.com/stretchr/testify/require"),
		"a name that only looks like": refuseThirdParty("pkg/store/sqlite", "modernc.org/sqlitefake"),
	}
	for what, why := range cases {
		if why == "" {
			t.Errorf("allowed: %s", what)
		}
	}
	if why := refuseOwn("pkg/engine", "pkg/engine/op", own["pkg/engine"]); why != "" {
		t.Errorf("refused: the engine imports op: %s", why)
	}
	if why := refuseThirdParty("pkg/store/sqlite", "modernc.org/sqlite/lib"); why != "" {
		t.Errorf("refused: sqlite imports modernc: %s", why)
	}
}
