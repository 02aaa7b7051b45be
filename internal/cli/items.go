package cli

import "fmt"

// itemsFailure is what a command over several items ends with: nil when all
// succeeded, an item's own failure when it was the only one, the code that all
// share when all failed alike, else partial. errs has nil for a success.
func itemsFailure(what string, errs []error) error {
	var codes []exitCode
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
		}
		codes = append(codes, codeOf(err))
	}
	code := commonCode(codes)
	switch {
	case code == exitOK:
		return nil
	case len(errs) == 1:
		return errs[0]
	}
	return &failure{
		code: code, tag: code.tag(),
		message: fmt.Sprintf("%d of %d %s did not succeed", failed, len(errs), what),
	}
}
