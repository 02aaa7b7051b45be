// Package message holds conversation data: messages, content blocks, usage,
// stop reasons, stream events, and the frames and reducer that make a streamed
// answer durable (spec §0.7, §2.5, §3.7).
//
// A message is the raw JSON it arrived as. Typed views are decoded from it on
// demand and nothing is ever re-encoded on the way through, so fields this
// package does not know, number spellings, duplicate keys and lone surrogates
// survive. Text in Go strings is WTF-8: an unpaired surrogate is its own
// three-byte sequence.
//
// The package imports the standard library and internal/rawjson, nothing else.
package message
