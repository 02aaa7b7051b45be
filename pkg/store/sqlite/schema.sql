-- Entries, ledger rows and list elements are clustered by their identity; the
-- payload columns hold raw JSON text, byte for byte as it was committed.
CREATE TABLE entries(
  id TEXT PRIMARY KEY,
  parent_id TEXT,
  seq INTEGER NOT NULL,
  type TEXT NOT NULL,
  custom_type TEXT,
  timestamp INTEGER NOT NULL,
  payload TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE scalar_values(
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (namespace, key)
);

CREATE TABLE list_values(
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (namespace, key, seq)
) WITHOUT ROWID;

CREATE TABLE usage_ledger(
  id TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  entry_id TEXT,
  adjustment INTEGER NOT NULL,
  usage TEXT NOT NULL,
  details TEXT
) WITHOUT ROWID;

-- One row each: the file is the session.
CREATE TABLE session(
  created_at INTEGER NOT NULL,
  parent_session_id TEXT,
  storage_version INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  message_count INTEGER NOT NULL,
  usage_payload TEXT NOT NULL,
  next_seq INTEGER NOT NULL,
  newest_timestamp INTEGER NOT NULL,
  generation INTEGER NOT NULL
);

CREATE TABLE writer_lease(
  owner_id TEXT,
  fence INTEGER NOT NULL,
  expires_at_ms INTEGER,
  ttl_ms INTEGER,
  host TEXT,
  boot_id TEXT,
  pid_ns TEXT,
  pid INTEGER,
  pid_start INTEGER,
  acquired_at INTEGER,
  command TEXT,
  socket TEXT
);
