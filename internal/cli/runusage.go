package cli

import (
	"context"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// ledgerPage is how many rows are read at a time, the newest first.
const ledgerPage = 500

// operationUsage adds up what the lane's latest operation has used, whichever
// processes drove it: the rows that are attributed to it (D55), and those of its
// results that report usage of their own. It reads the ledger backwards to where
// the lane's operation before it is met.
func operationUsage(ctx context.Context, q store.Queries, lane string, d engine.DriveOutcome, id string) (message.Usage, error) {
	var mine, unclear []store.UsageRow
	for query := (store.UsageQuery{Descending: true, Limit: ledgerPage}); ; {
		rows, err := q.ScanUsage(ctx, query)
		if err != nil {
			return message.Usage{}, err
		}
		before := false
		for _, row := range rows {
			a, attributed := rawjson.Get(row.Details, "attribution")
			operation, _ := rawjson.GetString(a, "operationId")
			where, _ := rawjson.GetString(a, "lane")
			switch {
			case row.Adjustment:
			case operation == id:
				mine = append(mine, row)
			case attributed && where == lane:
				before = true
			case !attributed && row.EntryID != "":
				unclear = append(unclear, row)
			}
			if before {
				break
			}
		}
		if before || len(rows) < ledgerPage {
			break
		}
		query.ToSeq = rows[len(rows)-1].Seq - 1
	}
	return addUp(ctx, q, mine, unclear, d)
}

// addUp adds the rows of an operation, and those unclear ones that belong to an
// entry of it: its result, or a tool's under one of its answers.
func addUp(ctx context.Context, q store.Queries, mine, unclear []store.UsageRow, d engine.DriveOutcome) (message.Usage, error) {
	var total message.Usage
	own := make(map[string]bool)
	if d.Outcome != nil && d.Outcome.Entry != nil {
		own[d.Outcome.Entry.ID] = true
	}
	for _, row := range mine {
		own[row.EntryID] = true
		u, err := message.ParseUsage(row.Usage)
		if err != nil {
			return total, err
		}
		total = total.Add(u)
	}
	for _, row := range unclear {
		belongs, err := under(ctx, q, row.EntryID, own)
		if err != nil {
			return total, err
		}
		if !belongs {
			continue
		}
		u, err := message.ParseUsage(row.Usage)
		if err != nil {
			return total, err
		}
		total = total.Add(u)
	}
	return total, nil
}

// under climbs from an entry over tool results to what they answer.
func under(ctx context.Context, q store.Queries, id string, own map[string]bool) (bool, error) {
	for id != "" && !own[id] {
		found, err := q.Entries(ctx, []string{id})
		if err != nil {
			return false, err
		}
		e, ok := found[id]
		if m := e.Message(); !ok || m == nil || m.Role() != message.RoleToolResult {
			return false, nil
		}
		id = e.ParentID
	}
	return id != "", nil
}
