// Package owner lets other processes reach a session that this one owns: the
// owner serves a Unix socket, and whoever finds the session held sends what it
// wants through it instead of waiting for the lease (D24, D25).
//
// Requests and answers are JSON objects, one a line. The first line of a
// connection says which owner of which session the client means, and the owner
// answers with the same; everything after it is
//
//	{"id":1,"op":"steer","lane":"main","entryId":"…","text":"…"}
//	{"id":1,"ok":true,"result":{…}}
//	{"id":1,"ok":false,"error":{"code":"no_active_run","message":"…","details":{…}}}
//
// and, before the answer to a watch, {"id":1,"snapshot":{…}} and
// {"id":1,"event":{…}}. A connection carries one request at a time; who wants
// two things at once opens two connections.
//
// A request may be repeated when its answer was lost: the client mints the ids.
// Which process answers decides nothing, since all of them commit to one file.
//
// Import law: engine, store, message, fsx and rawjson; never a command package.
package owner
