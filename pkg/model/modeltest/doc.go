// Package modeltest is the suite that every provider passes against a local
// server: how answers become events, how requests look on the wire, how failures
// are told (spec §3.7, behaviours §1, 2, 5). It knows no provider's interface; a
// Kit translates.
package modeltest
