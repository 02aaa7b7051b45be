// Package cli asks: it is the command line of drover. A command reads its
// arguments, opens what it needs through one of a few openers, calls the engine or
// the store, or the process that owns the session, and renders the answer; it
// decides nothing about sessions.
//
// Every command is three things: an options struct, a constructor that only
// knows flags, and a run function that only knows the options. Results go to
// stdout, everything else to stderr, and exit.go alone knows the exit codes.
//
// Import law: only cmd/drover may import cli, and cli is the only package that
// may import cobra, viper and tablewriter.
package cli
