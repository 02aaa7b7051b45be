-- entry_seq directly after branch_id, or ordered scans would sort; the trailing
-- columns make both scan indexes covering.
CREATE INDEX ix_be_seq ON branch_entries(branch_id, entry_seq, entry_id, entry_type);
CREATE INDEX ix_be_type ON branch_entries(branch_id, entry_type, entry_seq, entry_id);
CREATE INDEX ix_be_entry ON branch_entries(entry_id);
CREATE UNIQUE INDEX ix_bm_tip ON branch_meta(tip_entry_id);
