package anthropic

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
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

// adoptList is how many batches are listed, the newest first.
const adoptList = 100

// Adopt looks for the batch of submissions whose outcome was lost (D34). The API
// lists batches without the keys of their rows and tells those only once a batch
// has ended. One of that time that is still processed may be anybody's, so it is
// neither taken nor ruled out.
func (m *messages) Adopt(ctx context.Context, lost []effect.Submission) effect.Adoption {
	b := &answer.Builder{} // nobody hears of what goes wrong
	reply, err := m.ask(ctx, b, http.MethodGet, batchesPath+"?limit="+strconv.Itoa(adoptList), nil)
	if err != nil {
		return effect.Adoption{}
	}
	keys := make([]string, len(lost))
	for i, s := range lost {
		keys[i] = s.ResponseEntryID
	}
	var none effect.Adoption
	for _, j := range candidates(reply, lost) {
		if !j.ended() {
			none.Unsure = true
			continue
		}
		row, err := m.row(ctx, b, j.id, keys...)
		if err == nil {
			return effect.Adoption{Handle: m.handle(j, row.key, adoptPoll)}
		}
		none.Unsure = none.Unsure || tellsLater(err)
	}
	return none
}

// tellsLater tells of results that were not to be had whether they may be another
// time.
func tellsLater(err error) bool {
	if r, ok := errors.AsType[*answer.Refusal](err); ok {
		return r.Status == http.StatusTooManyRequests || r.Status >= http.StatusInternalServerError
	}
	return !errors.Is(err, errNoRow)
}

// candidates are the listed batches of one row that were made when one of the
// submissions would have been.
func candidates(list []byte, lost []effect.Submission) []job {
	data, _ := rawjson.Get(list, "data")
	var all []job
	// What is no list has no batches.
	_ = rawjson.ElementsFunc(data, func(start, end int) bool {
		if j, ok := parseJob(data[start:end]); ok && j.rows == 1 && j.madeFor(lost) {
			all = append(all, j)
		}
		return true
	})
	return all
}

// madeFor tells whether a batch was made when one of the submissions would have been.
func (j job) madeFor(lost []effect.Submission) bool {
	return slices.ContainsFunc(lost, func(s effect.Submission) bool {
		age := j.created.Sub(time.UnixMilli(s.ReservedAt))
		return -adoptSkew <= age && age <= adoptWithin
	})
}
