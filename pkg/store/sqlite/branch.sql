-- The branch index: a private cache of root paths, rebuilt from entries.
CREATE TABLE branch_entries(
  branch_id TEXT NOT NULL,
  entry_id TEXT NOT NULL,
  entry_seq INTEGER NOT NULL,
  entry_type TEXT NOT NULL,
  PRIMARY KEY (branch_id, entry_id)
) WITHOUT ROWID;

CREATE TABLE branch_meta(
  branch_id TEXT PRIMARY KEY,
  tip_entry_id TEXT NOT NULL,
  tip_seq INTEGER NOT NULL,
  base_branch_id TEXT,
  base_seq INTEGER
);
