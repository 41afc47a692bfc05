package rest

import (
	"context"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/lint"
	"github.com/caprouter/caprouter/internal/replay"
)

// replayedDays is how far back decisions are replayed if the caller names no time.
const replayedDays = 7

// handleDiff replays decisions that the caller may see with the registry in the body.
func (a *api) handleDiff(c *httpserver.Context) error {
	q := parseQuery(c.Request.URL.RawQuery, "since", "limit", "cursor")
	cfg := replay.Config{
		Reader: c.Caller, AnswerByDefault: a.answerByDefault, Registered: registeredAgents(a.deps.Registry()),
		Since: q.timeParam("since"), Limit: q.limitParam(replay.MaxLimit), Cursor: q.cursorParam(),
	}
	if err := q.err(); err != nil {
		return err
	}
	if cfg.Since.IsZero() {
		cfg.Since = time.Now().AddDate(0, 0, -replayedDays)
	}
	return a.checkRegistry(c, func(s *capabilities.Snapshot, turn *lint.Turn) (any, error) {
		if err := checkReplaySize(s); err != nil {
			return nil, err
		}
		cfg.Candidate, cfg.Pace = s, turn.Pace
		report, err := replay.Run(c.Request.Context(), cfg, func(ctx context.Context, q contract.DecisionQuery) (*contract.DecisionPage, error) {
			return a.deps.Decisions.Decisions(ctx, q, c.Caller)
		})
		if err != nil {
			return nil, fmt.Errorf("replay decisions: %w", err)
		}
		return report, nil
	})
}

// checkReplaySize rejects a registry that takes more than a few seconds to learn.
func checkReplaySize(s *capabilities.Snapshot) error {
	examples := 0
	for _, agent := range s.Catalogue.Agents {
		for _, list := range agent.Examples {
			examples += len(list)
		}
	}
	if len(s.Catalogue.Agents) <= maxLintAgents && len(s.Catalogue.Intents) <= maxLintIntents && examples <= maxLintExamples {
		return nil
	}
	return &contract.Error{Code: contract.CodeInvalidRequest, Message: fmt.Sprintf(
		"the registry is too large to replay decisions here: at most %d agents, %d intents and %d examples; caprouter replay --data-dir has no limit",
		maxLintAgents, maxLintIntents, maxLintExamples)}
}

// registeredAgents returns the agents that registered themselves, by id.
func registeredAgents(s *capabilities.Snapshot) map[string]bool {
	registered := map[string]bool{}
	for _, agent := range s.Fleet.Agents {
		if agent.Origin == contract.OriginRegistration {
			registered[agent.ID] = true
		}
	}
	return registered
}
