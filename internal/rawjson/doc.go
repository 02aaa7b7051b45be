// Package rawjson reads and writes JSON text without ever interpreting it more
// than a caller asks for.
//
// Session payloads must survive byte for byte: key order, number spelling,
// escape spelling, duplicate keys and lone surrogates included. The standard
// decoder keeps none of these, so storage, import and messages share this
// scanner and append encoder instead. It depends on the standard library only.
//
// Text decoded by this package is WTF-8: valid UTF-8, except that an unpaired
// surrogate escape (\ud83d without its partner) becomes its own three-byte
// sequence, which AppendQuote writes back as the same escape.
package rawjson
