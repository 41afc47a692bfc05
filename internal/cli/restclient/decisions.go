package restclient

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// CollectDecisions returns the newest entries that the query selects, newest first. Pages
// are the oldest first, so it reads all of them.
func CollectDecisions(
	query contract.DecisionQuery, readPage func(contract.DecisionQuery) (*contract.DecisionPage, error),
) ([]contract.DecisionEntry, error) {
	const pageSize = 200 // prompts of 64 KiB fit the limit of an answer
	list, limit := []contract.DecisionEntry{}, query.Limit
	query.Limit = pageSize
	for {
		page, err := readPage(query)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Decisions...)
		list = slices.Delete(list, 0, max(len(list)-limit, 0))
		if page.NextCursor == query.Cursor {
			slices.Reverse(list)
			return list, nil
		}
		query.Cursor = page.NextCursor
	}
}

// ListDecisions reads the decision log of the router.
func (c *Client) ListDecisions(ctx context.Context, query contract.DecisionQuery) ([]contract.DecisionEntry, error) {
	return CollectDecisions(query, func(q contract.DecisionQuery) (*contract.DecisionPage, error) {
		var page contract.DecisionPage
		return &page, c.GetResource(ctx, decisionsPath, decisionParameters(q), &page)
	})
}

// decisionParameters returns the query as parameters of the REST interface.
func decisionParameters(q contract.DecisionQuery) url.Values {
	parameters := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	for name, value := range map[string]string{
		"agent": q.Agent, "outcome": string(q.Outcome), "intent": q.Intent, "source": string(q.Source), "fallback": q.Fallback,
		"feedback":   string(q.Feedback),
		"request_id": q.RequestID, "cursor": q.Cursor,
	} {
		if value != "" {
			parameters.Set(name, value)
		}
	}
	if q.Below > 0 {
		parameters.Set("below", strconv.FormatFloat(q.Below, 'g', -1, 64))
	}
	if !q.Since.IsZero() {
		parameters.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	return parameters
}

// FindDecision returns the entry of a request in the decision log of the router.
func (c *Client) FindDecision(ctx context.Context, id string) (*contract.DecisionEntry, error) {
	list, err := c.ListDecisions(ctx, contract.DecisionQuery{RequestID: id, Limit: 1})
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, fmt.Errorf("%s has no decision on request %s: a request appears when it has ended, and a dry run never does", c.base, id)
	case list[0].Prompt == "":
		return nil, fmt.Errorf("the content of request %s was erased", id)
	}
	return &list[0], nil
}
