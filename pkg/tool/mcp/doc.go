// Package mcp offers the tools of Model Context Protocol servers (D47), over the
// official SDK.
//
// A server resolves every name SERVER__TOOL without being started; it starts when a
// request is about to offer one of its tools, and again on the next use after it
// died. What it says of itself, its list of tools and their hints, counts from then
// on. A stdio server runs under drover's supervisor and ends with it (D45).
//
// Import law: effect's interfaces, message, pkg/tool and the SDK.
package mcp
