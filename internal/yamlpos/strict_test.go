package yamlpos_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/internal/yamlpos"
)

type endpoint struct {
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	Retries int               `yaml:"retries"`
	Price   *float64          `yaml:"price"`
	Argv    []string          `yaml:"argv"`
}

func parse(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Content[0]
}

func TestDecode(t *testing.T) {
	got := map[string]endpoint{}
	err := yamlpos.Decode(parse(t, "MyHost:\n  url: &u http://x\n  headers: {X-Key: *u, n: 1}\n  retries: 2\n  price: 0.5\n  argv: [a, 1]\n"), "providers", &got)
	if err != nil {
		t.Fatal(err)
	}
	half := 0.5
	want := map[string]endpoint{"MyHost": {
		URL: "http://x", Headers: map[string]string{"X-Key": "http://x", "n": "1"}, Retries: 2, Price: &half, Argv: []string{"a", "1"},
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(endpoint{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeNode(t *testing.T) {
	var got map[string]struct {
		Schema *yaml.Node `yaml:"schema"`
	}
	if err := yamlpos.Decode(parse(t, "a: {schema: {type: object}}"), "programs", &got); err != nil {
		t.Fatal(err)
	}
	if n := got["a"].Schema; n == nil || n.Kind != yaml.MappingNode || n.Column != 13 {
		t.Errorf("got %+v", n)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"a:\n  ulr: x\n", "2:3: providers.a.ulr: is unknown here; the fields are url, headers, retries, price, argv"},
		{"a:\n  private: x\n", "2:3: providers.a.private: is unknown here; the fields are url, headers, retries, price, argv"},
		{"a:\n  url: [x]\n", "2:8: providers.a.url: must be a single value"},
		{"a:\n  url:\n", "2:7: providers.a.url: must be a single value"},
		{"a:\n  retries: many\n", `2:12: providers.a.retries: "many" is no whole number`},
		{"a:\n  argv: ls\n", "2:9: providers.a.argv: must be a list"},
		{"a:\n  argv: [x, {y: z}]\n", "2:13: providers.a.argv[1]: must be a single value"},
		{"a: x\n", "1:4: providers.a: must be a mapping of names to values"},
		{"a: {url: x, url: y}\n", "1:13: providers.a.url: is given twice"},
	}
	for _, tt := range tests {
		err := yamlpos.Decode(parse(t, tt.text), "providers", &map[string]endpoint{})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}
