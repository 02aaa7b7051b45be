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
