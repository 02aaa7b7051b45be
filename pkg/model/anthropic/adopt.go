package anthropic

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// A submission follows its reservation at once. A batch that was made earlier, by
// more than clocks may differ, or later than this is another's.
const (
	adoptSkew   = time.Minute
	adoptWithin = 10 * time.Minute
)

// adoptPoll is how long to wait between polls of a job whose window is not known
// any more.
const adoptPoll = time.Minute

// Adopt looks for the batch of a submission whose outcome was lost (D34). The API
// lists batches without the keys of their rows and tells those only once a batch
// has ended: a batch that has the row is the one; one that is still processed is
// taken for it when there is no other of that time, which Poll makes sure of.
func (m *messages) Adopt(ctx context.Context, responseEntryID string, since int64) (message.DeferredHandle, bool) {
	b := &answer.Builder{} // nobody hears of what goes wrong
	reply, err := m.ask(ctx, b, http.MethodGet, batchesPath+"?limit="+strconv.Itoa(adoptList), nil)
	if err != nil {
		return message.DeferredHandle{}, false
	}
	var open []job
	for _, j := range candidates(reply, time.UnixMilli(since)) {
		if !j.ended() {
			open = append(open, j)
			continue
		}
		if _, err := m.row(ctx, b, j.id, responseEntryID); err == nil {
			return m.handle(j, responseEntryID, adoptPoll, false), true
		}
	}
	if len(open) != 1 {
		return message.DeferredHandle{}, false
	}
	return m.handle(open[0], responseEntryID, adoptPoll, true), true
}

// adoptList is how many batches are listed, the newest first.
const adoptList = 100

// candidates are the listed batches of one row that were made when a submission
// would have been.
func candidates(list []byte, since time.Time) []job {
	data, _ := rawjson.Get(list, "data")
	var all []job
	// What is no list has no batches.
	_ = rawjson.ElementsFunc(data, func(start, end int) bool {
		j, ok := parseJob(data[start:end])
		age := j.created.Sub(since)
		if ok && j.rows == 1 && -adoptSkew <= age && age <= adoptWithin {
			all = append(all, j)
		}
		return true
	})
	return all
}
