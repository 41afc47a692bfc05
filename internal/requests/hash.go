package requests

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// hashResult tells results apart: SHA-256 of the result as canonical JSON
// (sorted members, no white space, numbers as doubles, as RFC 8785 has it), so
// that a result which was only written differently is the same. Its task id does
// not count, which a direct reply may leave out. No result has no hash.
func hashResult(res *contract.Result) (string, error) {
	if res == nil {
		return "", nil
	}
	said := *res
	said.TaskID = ""
	data, err := strictjson.Marshal(&said)
	if err != nil {
		return "", err
	}
	// What Marshal leaves as it was written is inside data. What holds a number
	// beyond a double stays so, and must come again as it was.
	var value any
	if strictjson.Unmarshal(data, &value) == nil {
		if data, err = strictjson.Marshal(value); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// ResultHash tells results apart as the record does. A result that cannot be
// encoded, which none that was decoded is, has none.
func ResultHash(res *contract.Result) string {
	hash, err := hashResult(res)
	if err != nil {
		return ""
	}
	return hash
}
