// Package scripted is the provider "scripted": models that answer offline, from
// the request itself (echo) or from a script file. They make runs repeatable,
// and failures, delays and kills testable (D50).
package scripted

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Name is the provider's name, and the name of its interface in answers.
const Name = "scripted"

// echoID is the id of the model that needs no script.
const echoID = "echo"

// Options configure the provider.
type Options struct {
	// StateDir is the folder that keeps the positions of scripts; it is created
	// when needed. Empty: each position is kept beside its script.
	StateDir string
}

// Provider resolves echo and script files.
type Provider struct {
	stateDir string
}

// New returns the provider.
func New(o Options) *Provider { return &Provider{stateDir: o.StateDir} }

// Models lists the one model that is always there.
func (p *Provider) Models() []string { return []string{echoID} }

// Resolve returns echo, or reads the script file that id names, relative to the
// working directory. A file that is not there is an *effect.UnknownModel, one
// that is no script a *ScriptError; any other error is an input/output failure,
// as when the script's position cannot be kept.
func (p *Provider) Resolve(id string) (effect.Model, error) {
	if id == echoID {
		return atOnce{&model{id: id, script: &script{limits: defaultLimits}, next: echo}}, nil
	}
	text, err := read(id)
	if err != nil {
		return nil, err
	}
	s, err := parseScript(id, text)
	if err != nil {
		return nil, err
	}
	pos, err := newPosition(p.stateDir, id, text)
	if err != nil {
		return nil, err
	}
	// A position that cannot be kept must show now: once the request has
	// started, a failure can only be told in its answer.
	if err := pos.prepare(context.Background()); err != nil {
		return nil, err
	}
	next := func(ctx context.Context, _ effect.Request) (response, error) { return s.next(ctx, pos) }
	return &model{id: id, script: s, next: next}, nil
}

// Absolute returns ref with its script file made absolute, so that it means the
// same from another working directory; any other reference is returned as it is.
func Absolute(ref message.ModelRef) (message.ModelRef, error) {
	if ref.Provider != Name || ref.ModelID == echoID {
		return ref, nil
	}
	path, err := filepath.Abs(ref.ModelID)
	if err != nil {
		return ref, fmt.Errorf("locate script %s: %w", ref.ModelID, err)
	}
	ref.ModelID = path
	return ref, nil
}

// read returns the content of a script file.
func read(path string) ([]byte, error) {
	unknown := func(reason string) error {
		return &effect.UnknownModel{Ref: message.ModelRef{Provider: Name, ModelID: path}, Reason: reason}
	}
	// Looked at before it is opened: opening a pipe waits for its other end.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), isAny(err, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.EINVAL):
		return nil, unknown("there is no such script file")
	case err != nil:
		return nil, fmt.Errorf("read script: %w", err)
	case !info.Mode().IsRegular():
		return nil, unknown("it is not a regular file")
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknown("there is no such script file")
	}
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return text, nil
}

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// atOnce is a model that never answers later.
type atOnce struct{ m *model }

// Info returns the model's limits.
func (a atOnce) Info() effect.ModelInfo { return a.m.Info() }

// Stream answers the request.
func (a atOnce) Stream(ctx context.Context, req effect.Request) effect.Events {
	return a.m.Stream(ctx, req)
}

// model is one script, or echo.
type model struct {
	id     string
	script *script
	// next takes the response to a request.
	next func(context.Context, effect.Request) (response, error)
}

// Info returns the script's limits.
func (m *model) Info() effect.ModelInfo {
	info := effect.ModelInfo{
		Ref:           message.ModelRef{Provider: Name, ModelID: m.id},
		API:           Name,
		ContextWindow: m.script.contextWindow,
		MaxTokens:     m.script.maxTokens,
		Images:        true,
	}
	if m.script.reasoning {
		info.Thinking = message.ThinkingLevels()[1:] // all but off
	}
	return info
}

// Stream answers with the script's next response. The response is used up when
// the sequence is first consumed, even if its consumer dies right after.
func (m *model) Stream(ctx context.Context, req effect.Request) effect.Events {
	return m.answer(ctx, req, message.DeferredHandle{})
}

// Poll answers a question about a deferred job with the script's next response;
// one that is deferred to the same job keeps it pending under the stored handle
// (D33).
func (m *model) Poll(ctx context.Context, handle message.DeferredHandle, req effect.Request) effect.Events {
	return m.answer(ctx, req, handle)
}

// Cancel has nothing to drop: a script keeps no jobs.
func (m *model) Cancel(context.Context, message.DeferredHandle) error { return nil }

func (m *model) answer(ctx context.Context, req effect.Request, polled message.DeferredHandle) effect.Events {
	return func(yield func(message.StreamEvent) bool) {
		p := newPlayer(ctx, m, req, yield)
		p.polled = polled
		if ctx.Err() != nil {
			p.abort()
			return
		}
		shown, err := show(ctx, req)
		var r response
		if err == nil {
			r, err = m.next(ctx, shown)
		}
		switch {
		case ctx.Err() != nil:
			p.abort()
		case err != nil:
			p.fail(failure{message: err.Error()})
		default:
			p.play(r)
		}
	}
}
