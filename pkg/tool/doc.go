// Package tool holds the tools that a model may call: the registry that finds
// them by name, the check of their arguments against a JSON schema, and the
// built-in tools bash, read, write and edit (behaviours §7, spec §3.8).
//
// Arguments are raw JSON and stay so: a check decodes a copy, and a tool reads
// the members it needs. Commands run under a supervisor, a second process of
// the same program, so that nothing they started outlives the call or the
// program that made it, however that ends (D45).
//
// The package imports message, the interfaces of effect, internal/fsx and
// internal/rawjson. It knows nothing of sessions or stores.
package tool
