package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/prompts"
)

// Generator calls a language model; *llm.Client is one. Its errors are *llm.Error or those
// of the context.
type Generator interface {
	Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error)
}

// Defaults of Config.
const (
	DefaultMaxOutputTokens = 8192
	DefaultTimeout         = time.Minute
	DefaultMaxTools        = 40
	DefaultMaxToolBytes    = 64 << 10
)

// Config configures a Planner and a Verifier. The zero value works.
type Config struct {
	MaxOutputTokens int           // of a reply
	Timeout         time.Duration // of one call of the model
	MaxTools        int           // that the model sees
	MaxToolBytes    int           // of their descriptions and schemas
}

func (c Config) withDefaults() Config {
	if c.MaxOutputTokens <= 0 {
		c.MaxOutputTokens = DefaultMaxOutputTokens
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxTools <= 0 {
		c.MaxTools = DefaultMaxTools
	}
	if c.MaxToolBytes <= 0 {
		c.MaxToolBytes = DefaultMaxToolBytes
	}
	return c
}

// Planner makes plans with a model. It is safe for concurrent use.
type Planner struct {
	cfg   Config
	model Generator
	mask  *redact.Redactor
}

// New returns a planner.
func New(cfg Config, model Generator, mask *redact.Redactor) (*Planner, error) {
	if model == nil || mask == nil {
		return nil, errors.New("planner: model and redactor are required")
	}
	return &Planner{cfg: cfg.withDefaults(), model: model, mask: mask}, nil
}

// Plan implements orchestrator.Planner. A reply that is not a plan is repaired once.
func (p *Planner) Plan(ctx context.Context, req *orchestrator.PlanRequest) (*contract.Plan, error) {
	masking := p.mask.StartMasking()
	data := p.promptData(req, masking)
	text := data.Render()
	rules := orchestrator.PlanRules{MaxSteps: req.MaxSteps, NeedCriteria: req.NeedCriteria}
	var plan *contract.Plan
	var mistakes []contract.ErrorDetail
	err := askTwice(ctx, p.cfg, p.model, contract.PurposePlan, text, func(reply string) string {
		plan, mistakes = readPlan(restoreJSON(reply, masking), rules)
		return describeMistakes(mistakes)
	})
	if err != nil {
		return nil, modelError(ctx, "planner", err, contract.ReasonPlannerFailed)
	}
	if len(mistakes) > 0 {
		return nil, &orchestrator.PlanError{Reason: contract.ReasonPlanInvalid, Message: "the plan of the model is not valid, also after a repair", Details: mistakes}
	}
	return plan, nil
}

// readPlan parses and checks a plan.
func readPlan(reply string, rules orchestrator.PlanRules) (*contract.Plan, []contract.ErrorDetail) {
	plan, mistakes := orchestrator.ParsePlan(json.RawMessage(reply))
	if len(mistakes) == 0 {
		mistakes = orchestrator.CheckPlan(plan, rules)
	}
	return plan, mistakes
}

// maxDescribed bounds the mistakes in a repair prompt.
const maxDescribed = 8

// describeMistakes returns the mistakes in one line, "" for none.
func describeMistakes(mistakes []contract.ErrorDetail) string {
	var parts []string
	for _, m := range mistakes[:min(len(mistakes), maxDescribed)] {
		parts = append(parts, strings.TrimSpace(m.Pointer+" "+m.Detail))
	}
	return strings.Join(parts, "; ")
}

// promptData returns the masked data of the prompt.
func (p *Planner) promptData(req *orchestrator.PlanRequest, masking *redact.Masking) *prompts.PlannerData {
	data := &prompts.PlannerData{
		Goal: masking.MaskText(req.Goal), Facts: maskJSON(masking, req.EnvContext), MaxSteps: req.MaxSteps, NeedCriteria: req.NeedCriteria,
		Outputs: describeOutputs(masking, req.Outputs),
	}
	var used []string
	if req.Previous != nil {
		data.Previous = maskPlan(masking, req.Previous)
		for i := range req.Previous.Steps {
			used = append(used, req.Previous.Steps[i].Action)
		}
	}
	for i := range req.Problems {
		e := &req.Problems[i]
		data.Problems = append(data.Problems, masking.MaskText(strings.TrimSpace(e.StepID+" "+e.Message+" "+describeMistakes(e.Details))))
	}
	tools := shortlistTools(req.Goal, req.Tools, used, p.cfg.MaxTools, p.cfg.MaxToolBytes)
	data.Omitted = len(req.Tools) - len(tools)
	for _, t := range tools {
		data.Tools = append(data.Tools, prompts.Tool{Action: t.Action(), Description: t.Description, Schema: string(t.InputSchema)})
	}
	return data
}

// askTwice calls the model, and once more with the problem of its reply, if check returns
// one. It returns an error only if there is no reply.
func askTwice(ctx context.Context, cfg Config, model Generator, purpose contract.CallPurpose, text prompts.Messages, check func(reply string) (problem string)) error {
	asked := text
	for attempt := range 2 {
		reply, err := ask(ctx, cfg, model, purpose, asked)
		if err != nil {
			return err
		}
		body := stripFence(reply.Text)
		problem := check(body)
		if problem == "" || attempt > 0 {
			return nil
		}
		if reply.Truncated {
			problem = "the reply was cut off: make it shorter"
		}
		asked = text.RepairReply(reply.Text, problem)
	}
	return nil
}

func ask(ctx context.Context, cfg Config, model Generator, purpose contract.CallPurpose, text prompts.Messages) (*llm.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	return model.Generate(ctx, &llm.Request{
		Purpose: purpose, System: text.System, User: text.User, Schema: &llm.Schema{Type: "object"}, MaxOutputTokens: cfg.MaxOutputTokens,
	})
}

// modelError returns the error of a run for one of the model. The error of the context
// remains, because it is not the model's.
func modelError(ctx context.Context, role string, err error, reason contract.RunReason) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	message := fmt.Sprintf("the model of the %s did not reply", role)
	if e, ok := errors.AsType[*llm.Error](err); ok {
		message = fmt.Sprintf("the model of the %s did not reply: %s", role, e.Error())
	}
	return &orchestrator.PlanError{Reason: reason, Message: message}
}

const markdownFence = "```"

// stripFence removes a Markdown fence that encloses the whole text.
func stripFence(text string) string {
	text = strings.TrimSpace(text)
	inside, opens := strings.CutPrefix(text, markdownFence)
	inside, closes := strings.CutSuffix(inside, markdownFence)
	if !opens || !closes {
		return text
	}
	return strings.TrimLeftFunc(inside, unicode.IsLetter) // the language, such as json
}

// describeOutputs returns the outputs of steps, masked.
func describeOutputs(masking *redact.Masking, outputs []contract.ToolOutput) []prompts.StepOutput {
	list := make([]prompts.StepOutput, len(outputs))
	for i := range outputs {
		o := &outputs[i]
		list[i] = prompts.StepOutput{Step: o.StepID, Action: o.Action, Status: o.Status}
		switch {
		case o.Error != nil:
			list[i].Text = masking.MaskText(o.Error.Error())
		case o.Result != nil && len(o.Result.Structured) > 0:
			list[i].Text = maskJSON(masking, o.Result.Structured)
		case o.Result != nil && (o.Result.Type == contract.ActionImage || o.Result.Type == contract.ActionAudio):
			list[i].Text = o.Result.Type + " " + o.Result.MIMEType
		case o.Result != nil:
			list[i].Text = maskContent(masking, o.Result.Content)
		}
	}
	return list
}

// maskContent masks the content of a result: a text, or a list of blocks.
func maskContent(masking *redact.Masking, content json.RawMessage) string {
	var text string
	if strictjson.Unmarshal(content, &text) == nil {
		return masking.MaskText(text)
	}
	return maskJSON(masking, content)
}

func maskJSON(masking *redact.Masking, raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	return string(masking.MaskJSON(raw, contract.DataClasses{"none"}))
}

func maskPlan(masking *redact.Masking, plan *contract.Plan) string {
	raw, err := strictjson.Marshal(plan)
	if err != nil { // its arguments are not JSON
		return ""
	}
	return maskJSON(masking, raw)
}

// placeholder matches the placeholders of masked values.
var placeholder = regexp.MustCompile(`\[[A-Z]{1,16}_[0-9]{1,6}\]`)

// restoreJSON replaces placeholders in a JSON text by their values, escaped.
func restoreJSON(text string, masking *redact.Masking) string {
	if len(masking.Kinds()) == 0 {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		value, err := strictjson.Marshal(masking.RestoreText(name, nil))
		if err != nil {
			return name
		}
		return string(value[1 : len(value)-1]) // without the quotes
	})
}
