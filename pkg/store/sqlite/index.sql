CREATE INDEX ix_entry_parent ON entries(parent_id);
CREATE INDEX ix_entry_seq ON entries(seq, type);
CREATE INDEX ix_usage_seq ON usage_ledger(seq);
