// Package resource finds what people keep in folders for their prompts: skills,
// in the open Agent Skills format, and prompt templates (behaviours §7).
//
// What is found is read whole, and what is wrong with a file is a Diagnostic
// with its path: one bad file never hides the others.
//
// Import law: no package of ours but rawjson.
package resource
