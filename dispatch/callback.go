package dispatch

import (
	"net/url"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// TokenSlack extends the life of the tokens of a task beyond its deadline, for network
// delay, clock skew, and a cancel request after the deadline.
const TokenSlack = 30 * time.Second

// tasksPath is where agents send results and progress to the router.
const tasksPath = "/api/v1/tasks/"

// NewCallback returns where the agent can send the result of a task later: at the router
// with this address, with the token.
func NewCallback(publicURL, taskID, token string) *contract.Callback {
	return &contract.Callback{URL: strings.TrimRight(publicURL, "/") + tasksPath + url.PathEscape(taskID) + "/result", Token: token}
}
