package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A person sees an answer grow while the vendor is still at it. Killed there, the
// prompt is driven on: what was asked is asked again, byte for byte, what had arrived
// is kept, and the tool that had run does not run again.
func TestVendorKill(t *testing.T) {
	for i, api := range vendorInterfaces() {
		t.Run(api.name, func(t *testing.T) {
			t.Parallel()
			vendor := newVendorTalk(t,
				tells(api.call("call_1", "echo ran >> ran; echo seen")), holds(api.begun("Once upon")), tells(api.text("The whole story.")),
				tells(api.text("Gladly.")),
			)
			w := newVendorWorld(t, api, []string{"jsonl", "sqlite"}[i%2], vendor.URL)
			p := w.speaking(t, "Once upon", "prompt", w.session, "tell me")
			w.heard(t, "Once upon")
			p.kill(t)

			if text := w.must(t, exitOK, "drive", w.session, "--wait-retry"); text != "The whole story." {
				t.Errorf("driven on, it says %q", text)
			}
			w.must(t, exitOK, "prompt", w.session, "go on")
			want := []string{
				"user tell me", "toolUse", "toolResult seen", "error Once upon", "stop The whole story.", "user go on", "stop Gladly.",
			}
			if diff := cmp.Diff(want, w.said(t)); diff != "" {
				t.Errorf("the conversation differs:\n%s", diff)
			}
			if ran, err := os.ReadFile(filepath.Join(w.repo, "ran")); string(ran) != "ran\n" {
				t.Errorf("the tool left %q: %v", ran, err)
			}
			asked := vendor.asked()
			if len(asked) != 4 {
				t.Fatalf("%d requests, want 4", len(asked))
			}
			if diff := cmp.Diff(asked[1], asked[2]); diff != "" {
				t.Errorf("what is asked again differs:\n%s", diff)
			}
			for n, body := range asked {
				if why := api.unpaired(t, body); why != "" {
					t.Errorf("request %d: %s: %s", n, why, body)
				}
			}
			if !strings.Contains(asked[3], "The whole story.") || strings.Contains(asked[3], "Once upon") {
				t.Errorf("the answer that was cut is sent, or the whole one is not: %s", asked[3])
			}
			w.must(t, exitOK, "verify", w.session)
		})
	}
}

// heard waits until the session holds this much of the answer that is on its way.
func (w *vendorWorld) heard(t *testing.T, text string) {
	t.Helper()
	for range 2000 {
		if strings.Contains(w.must(t, exitOK, "inspect", w.session, "--snapshot", "--json"), text) {
			return
		}
	}
	t.Fatalf("%q never became durable", text)
}
