package cli

import (
	"fmt"
	"slices"
	"strings"
)

// exitCode is the status that the process ends with.
type exitCode int

// The exit codes. Scripts branch on them: a code never changes its meaning.
const (
	exitOK       exitCode = 0
	exitFailed   exitCode = 1
	exitUsage    exitCode = 2
	exitPartial  exitCode = 3
	exitNotFound exitCode = 4
	exitCorrupt  exitCode = 5
	exitIO       exitCode = 6
	exitVersion  exitCode = 7
	exitRefused  exitCode = 8
	exitAborted  exitCode = 9
	exitLocked   exitCode = 11
	exitInternal exitCode = 70
	exitLater    exitCode = 75
	exitHup      exitCode = 129
	exitInt      exitCode = 130
	exitTerm     exitCode = 143
)

type exitRow struct {
	code    exitCode
	name    string
	meaning string
}

// exitTable is what `help exit-codes` prints.
func exitTable() []exitRow {
	return []exitRow{
		{exitOK, "ok", "done; a prompt or drive settled and completed; a query that found nothing"},
		{exitFailed, "failed", "the operation settled as failed"},
		{exitUsage, "usage", "wrong flag, argument or configuration, or a question without a terminal"},
		{exitPartial, "partial", "some of several items failed, each is named; skipped items do not count"},
		{exitNotFound, "not found", "no session, entry, lane, operation or file matches, or several do"},
		{exitCorrupt, "corrupt", "verify found problems, or a file cannot be trusted"},
		{exitIO, "io", "disk full, permission denied, or the store changed underneath"},
		{exitVersion, "version", "written by a newer version, or a conversion is needed and not allowed"},
		{exitRefused, "refused", "a precondition failed and nothing was written"},
		{exitAborted, "aborted", "the operation settled as aborted or declined"},
		{exitLocked, "locked", "another process owns the session, also after --lease-wait"},
		{exitInternal, "internal", "a fault or a defect of drover itself"},
		{exitLater, "later", "a durable wait or a safe yield: run it again, not before notBefore"},
		{exitHup, "signal", "ended by HUP after a controlled close; the operation can be driven on"},
		{exitInt, "signal", "ended by INT after a controlled close; the operation can be driven on"},
		{exitTerm, "signal", "ended by TERM after a controlled close; the operation can be driven on"},
	}
}

// String is the code's name.
func (c exitCode) String() string {
	for _, row := range exitTable() {
		if row.code == c {
			return row.name
		}
	}
	return "unknown"
}

// tag is the code's name as scripts match on it.
func (c exitCode) tag() string { return strings.ReplaceAll(c.String(), " ", "_") }

// exitHelp is the paragraph that closes every command's long help.
func exitHelp(codes ...exitCode) string {
	var b strings.Builder
	b.WriteString("\n\nEXIT STATUS\n")
	for _, row := range exitTable() {
		if slices.Contains(codes, row.code) {
			fmt.Fprintf(&b, "  %3d  %-9s  %s\n", row.code, row.name, row.meaning)
		}
	}
	b.WriteString("  Any other code is a failure: see `drover help exit-codes`.")
	return b.String()
}

// commonCode is the exit code of a command over several items: 0 when all
// succeeded, the shared code when all failed alike, else partial.
func commonCode(codes []exitCode) exitCode {
	if len(codes) == 0 {
		return exitOK
	}
	for _, c := range codes[1:] {
		if c != codes[0] {
			return exitPartial
		}
	}
	return codes[0]
}

// sweptCode is the exit code of a sweep over lanes. One that waits has not failed,
// and one that completed need not be driven again: waits alone are a reason to.
func sweptCode(codes []exitCode) exitCode {
	failed := func(c exitCode) bool { return c != exitOK && c != exitLater }
	if !slices.ContainsFunc(codes, failed) && slices.Contains(codes, exitLater) {
		return exitLater
	}
	return commonCode(codes)
}
