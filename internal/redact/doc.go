// Package redact replaces what a redaction file names (D54) in the text of
// session payloads, whatever their JSON spelling.
//
// The file has one rule a line, `literal ==> replacement` or
// `regex:PATTERN ==> replacement`. The first ` ==> ` splits the line and nothing
// is trimmed; empty lines and lines that begin with # are skipped. The
// replacement is taken as it stands, without references to groups.
//
// Text is compared decoded. Structural strings, such as ids, roles, types, model
// and tool names and signatures, are never changed: one that matches is
// reported instead. So are attachments: base64 is not looked at.
//
// Import law: redact imports internal/rawjson only.
package redact
