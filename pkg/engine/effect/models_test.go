package effect_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

func TestUnknownModel(t *testing.T) {
	ref := message.ModelRef{Provider: "acme", ModelID: "on"}
	for want, err := range map[string]error{
		"model acme/on is not registered":                               &effect.UnknownModel{Ref: ref},
		"model acme/on: no such file":                                   &effect.UnknownModel{Ref: ref, Reason: "no such file"},
		"model acme/on is not registered; nearest: acme/one, acme/one2": &effect.UnknownModel{Ref: ref, Nearest: []string{"acme/one", "acme/one2"}},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
