package fleet

import (
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// etagOf returns the ETag of a registration.
func etagOf(revision uint64) string { return fmt.Sprintf(`"%d"`, revision) }

// anyETag is the value of If-Match for any registration.
const anyETag = "*"

// matchesETag reports whether the value of If-Match contains the ETag of the revision, by
// strong comparison (RFC 9110 §13.1.1).
func matchesETag(ifMatch string, revision uint64) bool {
	for candidate := range strings.SplitSeq(ifMatch, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == anyETag || candidate == etagOf(revision) {
			return true
		}
	}
	return false
}

func errPrecondition() error {
	return &contract.Error{Code: contract.CodePreconditionFailed, Message: "If-Match is not the ETag of this registration"}
}
