-- A session as far as it is indexed: its message entries up to the sequence number
-- cursor, the last of which is cursor_entry. stamp tells the content of the files
-- that this is the whole of, '' while there may be more.
CREATE TABLE sessions(
  id INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL UNIQUE,
  generation INTEGER NOT NULL,
  cursor INTEGER NOT NULL,
  cursor_entry TEXT NOT NULL,
  stamp TEXT NOT NULL,
  name TEXT NOT NULL
);

-- The text comes last: what stands before it is read without it.
CREATE TABLE entries(
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  timestamp INTEGER NOT NULL,
  entry_id TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (session, entry_id)
);

CREATE VIRTUAL TABLE texts USING fts5(
  text, content = 'entries', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);

PRAGMA user_version = 1;
