package model_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// fake resolves what it lists, and ids for which it has an error to that.
type fake struct {
	ids    []string
	errors map[string]error
}

func (f fake) Models() []string { return f.ids }

func (f fake) Resolve(id string) (effect.Model, error) {
	if err := f.errors[id]; err != nil {
		return nil, err
	}
	if !slices.Contains(f.ids, id) {
		return nil, &effect.UnknownModel{}
	}
	return fakeModel(id), nil
}

type fakeModel string

func (m fakeModel) Info() effect.ModelInfo {
	return effect.ModelInfo{Ref: message.ModelRef{Provider: "fake", ModelID: string(m)}}
}

func (fakeModel) Stream(context.Context, effect.Request) iter.Seq[message.StreamEvent] { return nil }

var errDisk = &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}

func registry() *model.Registry {
	r := model.NewRegistry()
	r.Register("scripted", fake{
		ids: []string{"echo"},
		errors: map[string]error{
			"gone.yaml":   &effect.UnknownModel{Reason: "there is no such script file"},
			"eco":         &effect.UnknownModel{Reason: "there is no such script file"},
			"locked.yaml": errDisk,
		},
	})
	r.Register("ollama", fake{})
	r.Register("anthropic", fake{ids: []string{"claude-opus-4", "claude-sonnet-4"}})
	r.Register("openai", fake{
		ids:    []string{"gpt-5", "gpt-5-mini"},
		errors: map[string]error{"gpt-5": &effect.UnknownModel{Reason: "no key"}, "gpt-6": &effect.UnknownModel{Reason: "no key", Cure: "get one", Unusable: true}},
	})
	return r
}

func TestResolve(t *testing.T) {
	m, err := registry().Resolve(message.ModelRef{Provider: "openai", ModelID: "gpt-5-mini"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fakeModel("gpt-5-mini"), m); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownModels(t *testing.T) {
	tests := []struct {
		name, provider, id string
		want               effect.UnknownModel
	}{
		{"slip in the model", "scripted", "ehco", effect.UnknownModel{
			Nearest: []string{"scripted/echo"},
		}},
		{"slip in the provider", "antropic", "claude-sonnet-4", effect.UnknownModel{
			Reason:  "there is no provider antropic",
			Nearest: []string{"anthropic/claude-sonnet-4", "anthropic/claude-opus-4"},
		}},
		{"slip in a provider that lists nothing", "olama", "qwen3:8b", effect.UnknownModel{
			Reason:  "there is no provider olama",
			Nearest: []string{"ollama/qwen3:8b"},
		}},
		{"wrong provider", "openai", "claude-opus-4", effect.UnknownModel{
			Nearest: []string{"anthropic/claude-opus-4"},
		}},
		{"slip in the provider, long model", "scriptd", "/a/long/path/of/gpt-5/claude-opus-4.yaml", effect.UnknownModel{
			Reason:  "there is no provider scriptd",
			Nearest: []string{"scripted/echo"},
		}},
		{"the provider knows why, and of a model that may be meant", "scripted", "eco", effect.UnknownModel{
			Reason:  "there is no such script file",
			Nearest: []string{"scripted/echo"},
		}},
		{"the provider knows why, and of nothing near", "scripted", "gone.yaml", effect.UnknownModel{
			Reason: "there is no such script file",
		}},
		{"no such provider, and nothing near", "foo", "bar", effect.UnknownModel{Reason: "there is no provider foo"}},
		{"no such provider, and a model that another one has", "foo", "gpt-5-mini", effect.UnknownModel{
			Reason:  "there is no provider foo",
			Nearest: []string{"openai/gpt-5-mini"},
		}},
		{"the provider cannot be used", "openai", "gpt-6", effect.UnknownModel{Reason: "no key", Cure: "get one", Unusable: true}},
		{"the name is right", "openai", "gpt-5", effect.UnknownModel{Reason: "no key"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ref := message.ModelRef{Provider: tt.provider, ModelID: tt.id}
			m, err := registry().Resolve(ref)
			got, ok := errors.AsType[*effect.UnknownModel](err)
			if !ok || m != nil {
				t.Fatalf("Resolve = %v, %v", m, err)
			}
			tt.want.Ref = ref
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResolveFailure(t *testing.T) {
	_, err := registry().Resolve(message.ModelRef{Provider: "scripted", ModelID: "locked.yaml"})
	if _, unknown := errors.AsType[*effect.UnknownModel](err); unknown || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Resolve = %v", err)
	}
}

func TestEmptyRegistry(t *testing.T) {
	_, err := model.NewRegistry().Resolve(message.ModelRef{Provider: "a", ModelID: "b"})
	if got, want := err.Error(), "model a/b: there is no provider a"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}
