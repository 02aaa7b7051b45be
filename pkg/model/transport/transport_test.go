package transport_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/model/transport"
)

func client(t *testing.T, o transport.Options) *http.Client {
	t.Helper()
	c, err := transport.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAuthorities(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hi") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	if resp, err := client(t, transport.Options{}).Get(server.URL); err == nil {
		resp.Body.Close()
		t.Error("a server that nobody vouches for is trusted")
	}
	ca := write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	resp, err := client(t, transport.Options{CAFile: ca}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "hi" || err != nil {
		t.Errorf("body %q, %v", body, err)
	}
	if _, err := transport.New(transport.Options{CAFile: ca + ".missing"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if _, err := transport.New(transport.Options{CAFile: write(t, "no certificate")}); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("a file without certificates gives %v", err)
	}
}

// TestRedirect: a redirect is told and not followed.
func TestRedirect(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/login?token=secret", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	resp, err := client(t, transport.Options{}).Post(server.URL+"/v1", "text/plain", strings.NewReader("x"))
	if err == nil {
		resp.Body.Close()
	}
	redirect, ok := errors.AsType[*transport.RedirectError](err)
	if !ok || redirect.To != server.URL+"/login" || !redirect.Permanent() || asked != 1 {
		t.Errorf("err = %v after %d requests", err, asked)
	}
}

// TestProxy: the environment names the proxy. It is read once in a process, so
// another process asks.
func TestProxy(t *testing.T) {
	if url := os.Getenv("DROVER_TEST_ASK"); url != "" {
		resp, err := client(t, transport.Options{}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return
	}
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.String()) }))
	defer proxy.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestProxy$")
	cmd.Env = append(os.Environ(), "HTTP_PROXY="+proxy.URL, "NO_PROXY=", "DROVER_TEST_ASK=http://acme.test/v1")
	if out, err := cmd.CombinedOutput(); err != nil || len(asked) != 1 || asked[0] != "http://acme.test/v1" {
		t.Errorf("the proxy was asked %v: %v\n%s", asked, err, out)
	}
}
