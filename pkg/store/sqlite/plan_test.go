package sqlite

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

// plan is how SQLite runs a statement, one line per step.
func plan(t *testing.T, h *handle, text string) []string {
	t.Helper()
	var steps []string
	args := make([]any, strings.Count(text, "?"))
	err := h.each(ctx, "EXPLAIN QUERY PLAN "+text, args, func(rows *sql.Rows) (bool, error) {
		var id, parent, unused int
		var detail string
		err := rows.Scan(&id, &parent, &unused, &detail)
		steps = append(steps, detail)
		return true, err
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return steps
}

// TestPlans holds every query to its index: no scan of a table that grows, no
// sorting (spec §1.3, §1.7, §2.6).
func TestPlans(t *testing.T) {
	const (
		entry    = "SEARCH e USING PRIMARY KEY (id=?)"
		bySeq    = "SEARCH b USING COVERING INDEX ix_be_seq (branch_id=? AND entry_seq>? AND entry_seq<?)"
		byType   = "SEARCH b USING COVERING INDEX ix_be_type (branch_id=? AND entry_type=? AND entry_seq>? AND entry_seq<?)"
		ofType   = "SEARCH branch_entries USING COVERING INDEX ix_be_type (branch_id=? AND entry_type=? AND entry_seq>? AND entry_seq<?)"
		run      = "SEARCH branch_entries USING COVERING INDEX ix_be_seq (branch_id=? AND entry_seq>? AND entry_seq<?)"
		values   = "SEARCH scalar_values USING INDEX sqlite_autoindex_scalar_values_1 (namespace=? AND key=?)"
		listKey  = "SEARCH list_values USING PRIMARY KEY (namespace=? AND key=? AND seq"
		allOf    = "SEARCH e USING INDEX ix_entry_seq (seq>? AND seq<?)"
		ledger   = "SEARCH usage_ledger USING INDEX ix_usage_seq (seq>? AND seq<?)"
		tip      = "SEARCH branch_meta USING INDEX ix_bm_tip (tip_entry_id=?)"
		oneEntry = "SEARCH entries USING PRIMARY KEY (id=?)"
	)
	scan := func(q store.BranchQuery, columns string) string { return branchSQL(q, columns) }
	entries, usage := entrySequence(plainEntryColumns, ""), usageSequence(plainUsageColumns, "")
	cases := map[string]struct {
		text string
		want []string
	}{
		"branch, newest first":         {scan(store.BranchQuery{}, entryColumns), []string{bySeq, entry}},
		"branch, oldest first":         {scan(store.BranchQuery{OldestFirst: true}, entryColumns), []string{bySeq, entry}},
		"branch by type":               {scan(store.BranchQuery{Type: "message"}, entryColumns), []string{byType, entry}},
		"branch by type, oldest first": {scan(store.BranchQuery{Type: "message", OldestFirst: true}, entryColumns), []string{byType, entry}},
		"branch structure":             {scan(store.BranchQuery{}, structureColumns), []string{bySeq, entry}},
		"branch structure by type":     {scan(store.BranchQuery{Type: "custom"}, structureColumns), []string{byType, entry}},
		"newest stop":                  {sqlNewestOfType, []string{ofType}},
		"oldest stop":                  {sqlOldestOfType, []string{ofType}},
		"stop by id":                   {sqlSeqInLink, []string{"SEARCH branch_entries USING PRIMARY KEY (branch_id=? AND entry_id=?)"}},
		"segment of an entry":          {sqlCover, []string{"SEARCH branch_entries USING INDEX ix_be_entry (entry_id=?)"}},
		"base of a segment":            {sqlBaseOf, []string{"SEARCH branch_meta USING INDEX sqlite_autoindex_branch_meta_1 (branch_id=?)"}},
		"copy of a run":                {sqlCopyRun, []string{run}},
		"newest rows of a link":        {sqlNewestRows, []string{"CO-ROUTINE (subquery-1)", run, "SCAN (subquery-1)"}},
		"growth of a segment":          {sqlGrow, []string{tip}},
		"move of a tip":                {sqlMoveTip, []string{tip}},
		"list page":                    {sqlListAsc, []string{listKey + ">?)"}},
		"list page, descending":        {sqlListDesc, []string{listKey + "<?)"}},
		"list element":                 {sqlElement, []string{listKey + "=?)"}},
		"list deletion":                {sqlDeleteList, []string{"SEARCH list_values USING PRIMARY KEY (namespace=? AND key=?)"}},
		"value":                        {sqlValue, []string{values}},
		"value deletion":               {sqlDeleteValue, []string{values}},
		"value scan":                   {sqlScanValues, []string{"SEARCH scalar_values USING INDEX sqlite_autoindex_scalar_values_1 (namespace=? AND key>? AND key<?)"}},
		"entry":                        {sqlEntry, []string{entry}},
		"entry scan":                   {sqlScanEntries, []string{allOf}},
		"entry scan, descending":       {ordered(sqlScanEntries, true), []string{allOf}},
		"structures of a page":         {sqlStructuresAfter, []string{"SEARCH e USING INDEX ix_entry_seq (seq>?)"}},
		"usage ids of a page":          {sqlUsageIDsAfter, []string{"SEARCH usage_ledger USING INDEX ix_usage_seq (seq>?)"}},
		"plain entries of a page":      {entries.after, []string{"SEARCH e USING INDEX ix_entry_seq (seq>?)"}},
		"plain usage of a page":        {usage.after, []string{"SEARCH usage_ledger USING INDEX ix_usage_seq (seq>?)"}},
		"numbers of entries":           {sqlEntryNumbers, []string{"SEARCH e USING COVERING INDEX ix_entry_seq (seq>?)"}},
		"numbers of the ledger":        {sqlUsageNumbers, []string{"SEARCH usage_ledger USING COVERING INDEX ix_usage_seq (seq>?)"}},
		"plain entries by id": {entries.byID, []string{
			"SEARCH e USING PRIMARY KEY (id>?)", "SCALAR SUBQUERY 1", "SEARCH entries USING COVERING INDEX ix_entry_seq (seq>?)"}},
		"plain usage by id": {usage.byID, []string{
			"SEARCH usage_ledger USING PRIMARY KEY (id>?)", "SCALAR SUBQUERY 1", "SEARCH usage_ledger USING COVERING INDEX ix_usage_seq (seq>?)"}},
		"entries to vouch by":    {sqlVouchEntries, []string{"SCAN entries"}},
		"rows to vouch for":      {sqlVouchRows, []string{"SCAN branch_entries USING COVERING INDEX ix_be_seq"}},
		"entry page":             {sqlEntriesAfter, []string{"SEARCH e USING INDEX ix_entry_seq (seq>?)"}},
		"usage scan":             {sqlScanUsage, []string{ledger}},
		"usage scan, descending": {ordered(sqlScanUsage, true), []string{ledger}},
		"usage page":             {sqlUsageAfter, []string{"SEARCH usage_ledger USING INDEX ix_usage_seq (seq>?)"}},
		"what an id names": {sqlIDKind, []string{
			"COMPOUND QUERY", "LEFT-MOST SUBQUERY", oneEntry, "UNION ALL", "SEARCH usage_ledger USING PRIMARY KEY (id=?)"}},
		"start of a commit": {sqlBase, []string{"SCAN l", "SCAN s"}}, // one row each
		"page of nodes":     {sqlNodesBefore, []string{"SEARCH entries USING INDEX ix_entry_seq (seq<?)"}},
		"index at open": {sqlIndexMissing, []string{
			"COMPOUND QUERY", "LEFT-MOST SUBQUERY",
			"CO-ROUTINE (subquery-1)", "SCAN entries USING COVERING INDEX ix_entry_parent", "SCAN (subquery-1)", // of one row
			"SCALAR SUBQUERY 2", "SCAN branch_meta USING COVERING INDEX ix_bm_tip", // up to the first row
			"UNION ALL", "SEARCH v USING INDEX sqlite_autoindex_scalar_values_1 (namespace=?)", entry,
			"CORRELATED SCALAR SUBQUERY 4", "SEARCH b USING COVERING INDEX ix_be_entry (entry_id=?)"}},
		"start of a branch": {sqlEntrySeq, []string{oneEntry}},
		"entries without a row": {sqlUnindexed, []string{
			"SCAN e USING COVERING INDEX ix_entry_seq", "CORRELATED SCALAR SUBQUERY 1", "SEARCH b USING COVERING INDEX ix_be_entry (entry_id=?)"}},
	}
	path := newSession(t)
	h, err := openHandle(path, dsnReader)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, plan(t, h, c.text)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
