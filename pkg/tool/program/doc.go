// Package program makes tools of programs that the configuration names (D46): the
// arguments of a call come on stdin, what the program prints is the result,
// descriptor 3 takes its progress, and a socket its memos. Programs run under the
// supervisor of package tool, so that nothing they start outlives the call (D45).
//
// The package imports message, the interfaces of effect, tool and
// internal/rawjson. It knows nothing of sessions or stores.
package program
