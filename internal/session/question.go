package session

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// QuestionBucket stores open clarifications. *store.Bucket implements it.
type QuestionBucket interface {
	store.Versioned
	Delete(ctx context.Context, key string) error
	Discard(ctx context.Context, key string) error
}

// Questions stores the readings that clarifications offer. It is safe for
// concurrent use.
type Questions struct {
	bucket QuestionBucket
	space  *spaceReserver
	logger *slog.Logger
}

// NewQuestions returns a store of clarifications in the bucket, which is that of the
// sessions, with the same ledger.
func NewQuestions(bucket QuestionBucket, shares *quota.Ledger, logger *slog.Logger) *Questions {
	return &Questions{bucket: bucket, space: &spaceReserver{bucket, shares, logger}, logger: logger}
}

// storedQuestion is what a caller was asked.
type storedQuestion struct {
	Tenant  string                         `json:"tenant"`
	Subject string                         `json:"subject"`
	Issuer  string                         `json:"issuer,omitempty"`
	Options []contract.ClarificationOption `json:"options"`
}

func questionKey(requestID string) string { return "question." + store.HashKey(requestID) }

// Store stores the options of the clarification that the request ended with. An
// error is logged: the caller can still send the request again in other words.
func (q *Questions) Store(ctx context.Context, requestID string, caller *contract.Caller, options []contract.ClarificationOption) {
	value, err := strictjson.Marshal(storedQuestion{Tenant: caller.Tenant, Subject: caller.Subject, Issuer: caller.Issuer, Options: options})
	if err == nil {
		q.space.reserve(ctx, quota.OwnerOf(caller), questionKey(requestID))
		_, err = store.CompareAndSet(ctx, q.bucket, questionKey(requestID), func(store.Entry) ([]byte, error) { return value, nil })
	}
	if err != nil {
		q.logger.WarnContext(ctx, "cannot store the options of a clarification", "request_id", requestID, "error", err)
	}
}

// Choose returns the classification of the option that the caller chose. Its
// confidence is 1. It decides no more than a model does: the matcher still checks
// which agents may serve it.
func (q *Questions) Choose(ctx context.Context, caller *contract.Caller, choice *contract.ClarificationChoice) (*Pinned, error) {
	asked, err := q.load(ctx, choice.RequestID)
	if err != nil {
		return nil, store.CallerError(ctx, q.logger, "the clarification cannot be read", err)
	}
	e := contract.InvalidRequestDetails(nil)
	owner := contract.Caller{Tenant: asked.Tenant, Subject: asked.Subject, Issuer: asked.Issuer}
	if len(asked.Options) == 0 || !owner.SamePrincipal(caller) {
		e.Add("/clarification/request_id", "is not the id of an open clarification of yours, or it has expired; send the request again without clarification")
		return nil, e
	}
	i := slices.IndexFunc(asked.Options, func(o contract.ClarificationOption) bool { return o.ID == choice.OptionID })
	if i < 0 {
		ids := make([]string, len(asked.Options))
		for i := range asked.Options {
			ids[i] = asked.Options[i].ID
		}
		e.Add("/clarification/option_id", "is not one of the options: "+strings.Join(ids, ", "))
		return nil, e
	}
	return &Pinned{Reason: ReasonClarified, Classification: contract.Classification{
		Intent: asked.Options[i].Intent, Domains: asked.Options[i].Domains, Subtasks: []contract.Subtask{}, Confidence: 1,
	}}, nil
}

func (q *Questions) load(ctx context.Context, requestID string) (asked storedQuestion, err error) {
	entry, err := q.bucket.Get(ctx, questionKey(requestID))
	if errors.Is(err, store.ErrNotFound) {
		return asked, nil
	}
	if err == nil {
		err = strictjson.Unmarshal(entry.Value, &asked)
	}
	return asked, err
}

// Erase removes the clarification of a request.
func (q *Questions) Erase(ctx context.Context, requestID string) error {
	return q.bucket.Delete(ctx, questionKey(requestID))
}
