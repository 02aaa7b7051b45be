package modeltest

import "testing"

// Run runs the suite.
func Run(t *testing.T, k Kit) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, Kit)
	}{
		{"Text", testText},
		{"Full", testFull},
		{"Request", testRequest},
		{"Levels", testLevels},
		{"Redacted", testRedacted},
		{"InterleavedCalls", testInterleavedCalls},
		{"InterleavedBlocks", testInterleavedBlocks},
		{"EmptyDeltas", testEmptyDeltas},
		{"BrokenArguments", testBrokenArguments},
		{"Usage", testUsage},
		{"Stops", testStops},
		{"SplitCharacters", testSplitCharacters},
		{"Parallel", testParallel},
		{"Huge", testHuge},
		{"SignaturesGoBack", testSignaturesGoBack},
		{"ForeignAnswers", testForeignAnswers},
		{"Images", testImages},
		{"Healing", testHealing},
		{"OldContent", testOldContent},
		{"Hooks", testHooks},
		{"Headers", testHeaders},
		{"Keys", testKeys},
		{"Unusable", testUnusable},
		{"Late", testLate},
		{"Statuses", testStatuses},
		{"RetryAfter", testRetryAfter},
		{"Overflow", testOverflow},
		{"FailsInTheStream", testFailsInTheStream},
		{"Cut", testCut},
		{"Stalled", testStalled},
		{"Unreachable", testUnreachable},
		{"NoEvents", testNoEvents},
		{"OddEvents", testOddEvents},
		{"Aborted", testAborted},
		{"ConsumerStops", testConsumerStops},
		{"NoRetries", testNoRetries},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, k) })
	}
}

// testLate: a provider makes its client for the first request: what the endpoint says
// until then counts.
func testLate(t *testing.T, k Kit) {
	w := newWorld(t, k)
	e := w.endpoint(w.server.Client())
	p := k.New(e)
	p.Models()
	w.model = w.resolve(p)
	w.model.Info()
	e.Headers["X-Late"] = "in time"
	w.say(plain())
	if got := w.heads[0].Header.Get("X-Late"); got != "in time" {
		t.Errorf("the header that came late is %q", got)
	}
}
