package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/drover-run/drover/pkg/model/catalogue"
	"github.com/drover-run/drover/pkg/tool"
)

// keyPatience is how long a command may take to tell a key; some ask a person to
// unlock what they read it from.
const keyPatience = time.Minute

// keyVariable is the variable that holds the key of a provider, unless its
// configuration says otherwise; "" when it needs none.
func (p providerConfig) keyVariable(name string) string {
	switch {
	case p.APIKeyCommand != nil:
		return ""
	case p.APIKeyEnv != "":
		return p.APIKeyEnv
	case name == catalogue.Anthropic:
		return "ANTHROPIC_API_KEY"
	case name == catalogue.OpenAI:
		return "OPENAI_API_KEY"
	}
	return ""
}

// secretEnv tells the variables that no child process is started with, unless its
// own configuration passes one on by name (D44).
func (c *config) secretEnv(name string) bool {
	switch name {
	case "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY",
		"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS":
		return true
	}
	for _, p := range c.providers {
		if name != "" && p.APIKeyEnv == name {
			return true
		}
	}
	return false
}

// key returns what tells the secret of a provider when a request is about to be
// made, nil when none is needed, and why that cannot work as far as is known now.
func (f *factory) key(c *config, name string, p providerConfig) (get func(context.Context) (string, error), why obstacle) {
	if p.APIKeyCommand != nil {
		command := &keyCommand{provider: name, argv: p.APIKeyCommand, strip: c.secretEnv, patience: keyPatience, turn: make(chan struct{}, 1)}
		if _, err := exec.LookPath(p.APIKeyCommand[0]); err != nil {
			why.what = fmt.Sprintf("the program of its api_key_command, %s, cannot be run: %v", filepath.Base(p.APIKeyCommand[0]), causeOf(err))
			why.cure = fmt.Sprintf("have providers.%s.api_key_command name a program that is there, by its path or in PATH", name)
		}
		return command.get, why
	}
	variable := p.keyVariable(name)
	if variable == "" {
		return nil, why
	}
	secret := strings.TrimSpace(f.env(variable))
	switch {
	case secret == "":
		why.what = fmt.Sprintf("the variable %s, which holds its key, is not set", variable)
	case !isKey(secret):
		why.what = fmt.Sprintf("the variable %s holds no key: it has blanks or control characters", variable)
	}
	if why.what != "" {
		why.cure = fmt.Sprintf("set %s to the key, or have providers.%s.api_key_command print it", variable, name)
	}
	return func(context.Context) (string, error) { return secret, nil }, why
}

// causeOf is what exec says of a program without its name.
func causeOf(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

func isKey(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// keyCommand tells a key by running a program, once for the process. Its errors
// repeat nothing that the program printed.
type keyCommand struct {
	provider string
	argv     []string
	strip    func(variable string) bool
	patience time.Duration
	turn     chan struct{} // holds one element while somebody runs it or looks
	known    string
}

func (k *keyCommand) get(ctx context.Context) (string, error) {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if k.known != "" {
		return k.known, nil
	}
	secret, err := k.run(ctx)
	if err != nil {
		return "", fmt.Errorf("the api_key_command of the provider %s %w", k.provider, err)
	}
	k.known = secret
	return secret, nil
}

// run keeps the program in the foreground: it may want to ask a person on the
// terminal. It ends with this process, however that ends.
func (k *keyCommand) run(ctx context.Context) (string, error) {
	printed := &head{limit: 64 << 10}
	cmd := tool.Command{Argv: k.argv, Env: k.environment(), Stdout: printed, Stderr: io.Discard, Foreground: true}
	end := cmd.Run(ctx, k.patience)
	secret := strings.TrimSpace(string(printed.b))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case end.TimedOut:
		return "", fmt.Errorf("did not end within %v", k.patience)
	case end.Err != nil:
		return "", fmt.Errorf("could not be run: %w", end.Err)
	case end.Signal != 0:
		return "", fmt.Errorf("was ended by signal %d (%s); run it by hand to see why", end.Signal, syscall.Signal(end.Signal))
	case end.Failed():
		return "", fmt.Errorf("failed with exit status %d; run it by hand to see why", end.Code)
	case secret == "":
		return "", errors.New("printed nothing")
	case printed.full || !isKey(secret):
		return "", errors.New("printed something that is no key: it has blanks, several lines or control characters")
	}
	return secret, nil
}

func (k *keyCommand) environment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return k.strip(name)
	})
}

// head keeps the beginning of what is written to it.
type head struct {
	b     []byte
	limit int
	full  bool
}

func (h *head) Write(p []byte) (int, error) {
	room := h.limit - len(h.b)
	if len(p) > room {
		h.full = true
	}
	h.b = append(h.b, p[:min(room, len(p))]...)
	return len(p), nil
}
