package planner

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/prompts"
)

// Verifier verifies with a model. It is safe for concurrent use.
type Verifier struct {
	cfg   Config
	model Generator
	mask  *redact.Redactor
}

// NewVerifier returns a verifier.
func NewVerifier(cfg Config, model Generator, mask *redact.Redactor) (*Verifier, error) {
	if model == nil || mask == nil {
		return nil, errors.New("planner: model and redactor are required")
	}
	return &Verifier{cfg: cfg.withDefaults(), model: model, mask: mask}, nil
}

// verdictJSON is the reply of the model. No other keys are accepted.
type verdictJSON struct {
	Verified *bool    `json:"verified"`
	Reasons  []string `json:"reasons"`
}

// Limits of the reasons in a verdict.
const (
	maxReasons    = 10
	maxReasonText = 500
)

// Verify implements orchestrator.Verifier. A reply that is not a verdict is repaired once,
// and then an error: without a verdict, nothing is verified.
func (v *Verifier) Verify(ctx context.Context, req *orchestrator.VerifyRequest) (*orchestrator.Verdict, error) {
	masking := v.mask.StartMasking()
	data := prompts.VerifierData{Goal: masking.MaskText(req.Goal), Outputs: describeOutputs(masking, req.Outputs)}
	if req.Plan != nil {
		data.Plan = maskPlan(masking, req.Plan)
	}
	var reply verdictJSON
	problem := ""
	err := askTwice(ctx, v.cfg, v.model, contract.PurposeVerify, data.Render(), func(text string) string {
		reply, problem = readVerdict(text)
		return problem
	})
	if err != nil {
		return nil, modelError(ctx, "verifier", err, contract.ReasonVerifierFailed)
	}
	if problem != "" {
		return nil, &orchestrator.PlanError{Reason: contract.ReasonVerifierFailed, Message: "the verdict of the model is not valid, also after a repair: " + problem}
	}
	verdict := &orchestrator.Verdict{Passed: *reply.Verified}
	for _, reason := range reply.Reasons[:min(len(reply.Reasons), maxReasons)] {
		// Restore nothing: the text may be shown to others than the caller.
		verdict.Findings = append(verdict.Findings, orchestrator.Finding{Detail: truncateText(reason)})
	}
	return verdict, nil
}

// readVerdict parses a verdict, and returns its problem, "" for none.
func readVerdict(text string) (verdictJSON, string) {
	var reply verdictJSON
	if err := strictjson.Unmarshal([]byte(text), &reply); err != nil {
		return reply, err.Error()
	}
	if reply.Verified == nil {
		return reply, "/verified is required"
	}
	return reply, ""
}

func truncateText(text string) string {
	runes := []rune(text)
	if len(runes) <= maxReasonText {
		return text
	}
	return string(runes[:maxReasonText]) + "…"
}
