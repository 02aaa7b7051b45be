package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrNoCall says that there is no tool call, any more or at all, whose memos could
// be used.
var ErrNoCall = errors.New("no tool call is running here")

// MemoError is what the process that makes the call says of a request.
type MemoError struct{ Msg string }

func (e *MemoError) Error() string { return e.Msg }

// CheckMemoName refuses what cannot name a memo (spec §3.8).
func CheckMemoName(name string) error {
	if name == "" || strings.Contains(name, ":") {
		return fmt.Errorf("memo name %q is empty or has a colon", name)
	}
	return nil
}

// GetMemo reads a memo of the call that an environment tells of, false when it is
// not set.
func GetMemo(ctx context.Context, env func(string) string, name string) (json.RawMessage, bool, error) {
	a, err := ask(ctx, env, request{name: name})
	return a.value, a.value != nil, err
}

// SetMemo writes a memo, valid JSON on one line, durably.
func SetMemo(ctx context.Context, env func(string) string, name string, value json.RawMessage) error {
	_, err := ask(ctx, env, request{name: name, value: value})
	return err
}

func ask(ctx context.Context, env func(string) string, r request) (answer, error) {
	path := env(EnvSocket)
	if path == "" {
		return answer{}, ErrNoCall
	}
	r.token = env(EnvToken)
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", ErrNoCall, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(r.append(nil)); err != nil {
		return answer{}, fmt.Errorf("%w: %w", ErrNoCall, err)
	}
	line, err := readLine(conn, maxMemoLine)
	if err != nil {
		return answer{}, fmt.Errorf("%w: it ended before it answered: %w", ErrNoCall, err)
	}
	a, err := parseAnswer(line)
	if err == nil && a.err != "" {
		err = &MemoError{a.err}
	}
	return a, err
}
