package anthropic

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
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

// adoptList is how many batches one list has, maxLists how many lists are asked for at
// most.
const (
	adoptList = 100
	maxLists  = 50
)

// Adopt looks for the batch of submissions whose outcome was lost (D34). The API
// lists batches without the keys of their rows and tells those only once a batch
// has ended. One of that time that is still processed may be anybody's, so it is
// neither taken nor ruled out.
func (m *messages) Adopt(ctx context.Context, now int64, lost []effect.Submission) effect.Adoption {
	b := &answer.Builder{} // nobody hears of what goes wrong
	jobs, err := m.candidates(ctx, b, lost)
	if err != nil {
		return effect.Adoption{Unsure: tellsLater(err)}
	}
	keys := make([]string, len(lost))
	for i, s := range lost {
		keys[i] = s.ResponseEntryID
	}
	var none effect.Adoption
	for _, j := range jobs {
		if !j.ended() {
			none.Unsure = true
			continue
		}
		row, err := m.row(ctx, b, j.id, keys...)
		if err == nil {
			return effect.Adoption{Handle: m.handle(j, row.key, adoptPoll)}
		}
		none.Unsure = none.Unsure || tellsLater(err) || !errors.Is(err, errNoRow) && j.young(now)
	}
	return none
}

// resultsLate is how old a batch may be of which the results are not to be had, before
// they count as gone: they may come after its end.
const resultsLate = 48 * time.Hour

// young tells of a batch whether its results may be late at the time now, Unix ms.
func (j job) young(now int64) bool { return time.UnixMilli(now).Sub(j.created) < resultsLate }

// tellsLater tells of a question that got no answer whether it may get one another
// time. Nothing is submitted again before: who loses the answer to a submission is
// likely to lose the next one, too.
func tellsLater(err error) bool {
	r, ok := errors.AsType[*answer.Refusal](err)
	switch {
	case !ok:
		return !errors.Is(err, errNoRow)
	case r.Status == 0:
		return r.Class == message.ClassServer || r.Class == message.ClassNetwork || r.Class == message.ClassTimeout
	}
	passing := []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	return r.Status >= http.StatusInternalServerError || slices.Contains(passing, r.Status)
}

// candidates lists the batches of one row that were made when one of the submissions
// would have been, the newest first. More than one list is asked for only where so many
// were made since.
func (m *messages) candidates(ctx context.Context, b *answer.Builder, lost []effect.Submission) ([]job, error) {
	var all []job
	after := ""
	for range maxLists {
		query := url.Values{"limit": {strconv.Itoa(adoptList)}}
		if after != "" {
			query.Set("after_id", after)
		}
		reply, err := m.ask(ctx, b, http.MethodGet, batchesPath+"?"+query.Encode(), nil)
		if err != nil {
			return nil, err
		}
		oldest := job{}
		data, _ := rawjson.Get(reply, "data")
		// What is no list has no batches.
		_ = rawjson.ElementsFunc(data, func(start, end int) bool {
			j, ok := parseJob(data[start:end])
			if ok && j.rows == 1 && j.madeFor(lost) {
				all = append(all, j)
			}
			oldest = j
			return true
		})
		more, _ := rawjson.Get(reply, "has_more")
		if string(more) != "true" || oldest.id == "" || oldest.id == after || oldest.before(lost) {
			return all, nil
		}
		after = oldest.id
	}
	return all, nil
}

// before tells whether a batch, and what was made before it, is older than all of the
// submissions.
func (j job) before(lost []effect.Submission) bool {
	return !slices.ContainsFunc(lost, func(s effect.Submission) bool {
		return j.created.Sub(time.UnixMilli(s.ReservedAt)) >= -adoptSkew
	})
}

// madeFor tells whether a batch was made when one of the submissions would have been.
func (j job) madeFor(lost []effect.Submission) bool {
	return slices.ContainsFunc(lost, func(s effect.Submission) bool {
		age := j.created.Sub(time.UnixMilli(s.ReservedAt))
		return -adoptSkew <= age && age <= adoptWithin
	})
}
