package classifier

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Limits of a reply.
const (
	maxReply  = 1 << 20 // bytes; a valid reply has a few thousand
	maxReason = 200     // characters of a subtask's reason
	maxDetail = 300     // characters of an error detail
	maxQuoted = 60      // characters of an invalid name in it
)

// modelReply is the JSON that a model must reply with. A pointer is nil if the
// member is absent or null.
type modelReply struct {
	Intent     *string        `json:"intent" validate:"required"`
	Domains    []string       `json:"domains" validate:"required,max=3"`
	Subtasks   []replySubtask `json:"subtasks" validate:"max=3,dive"`
	Confidence *float64       `json:"confidence" validate:"required,min=0,max=1"`
}

type replySubtask struct {
	Title   *string   `json:"title" validate:"required"`
	Reason  *string   `json:"reason"`
	Intent  *string   `json:"intent"`
	Domains *[]string `json:"domains" validate:"omitempty,max=3"`
}

// closedVocabulary contains the names that a reply may use: those declared in
// the registry, sorted, and contract.Unknown.
type closedVocabulary struct{ intents, domains []string }

func newVocabulary(s *capabilities.Catalogue) closedVocabulary {
	return closedVocabulary{s.Intents, s.Domains}
}

// replyFlaw is the reason why a reply is rejected.
type replyFlaw struct{ reason, detail string }

func invalidJSON(detail string) *replyFlaw {
	return &replyFlaw{llm.ReasonInvalidJSON, sanitizeLine(detail, maxDetail)}
}

func invalidValue(at, format string, args ...any) *replyFlaw {
	return &replyFlaw{llm.ReasonInvalidValue, sanitizeLine(at+": "+fmt.Sprintf(format, args...), maxDetail)}
}

// parseReply validates a model's reply strictly: exactly one JSON object of
// this shape, optionally in a Markdown fence, with names of the closed
// vocabulary only. It is pure.
func parseReply(text string, names closedVocabulary) (contract.Classification, *replyFlaw) {
	var none contract.Classification
	r, bad := decodeReply(text)
	if bad != nil {
		return none, bad
	}
	if bad := r.checkShape(); bad != nil {
		return none, bad
	}
	clf := contract.Classification{Intent: *r.Intent, Subtasks: []contract.Subtask{}}
	if bad := names.checkIntent("/intent", clf.Intent); bad != nil {
		return none, bad
	}
	if clf.Domains, bad = names.checkDomains("/domains", r.Domains); bad != nil {
		return none, bad
	}
	if len(clf.Domains) == 0 && clf.Intent != contract.Unknown {
		return none, invalidValue("/domains", "must have 1 to %d entries; if none fits, the one is %q", contract.MaxDomains, contract.Unknown)
	}
	clf.Confidence = max(*r.Confidence, 0) // not −0
	for i := range r.Subtasks {
		sub, bad := names.parseSubtask(fmt.Sprintf("/subtasks/%d", i), &r.Subtasks[i])
		if bad != nil {
			return none, bad
		}
		if !slices.ContainsFunc(clf.Subtasks, func(s contract.Subtask) bool { return sameSubtask(&s, &sub) }) {
			clf.Subtasks = append(clf.Subtasks, sub)
		}
	}
	return clf, nil
}

// checkShape checks the tags of the reply. Only its names and the length of cleaned titles
// are checked elsewhere, because they depend on the registry and on sanitizeLine.
func (r *modelReply) checkShape() *replyFlaw {
	problems := strictjson.Validate(r)
	switch {
	case len(problems) == 0:
		return nil
	case problems[0].Detail == strictjson.Required:
		return invalidJSON(problems[0].Pointer + ": " + problems[0].Detail)
	}
	return invalidValue(problems[0].Pointer, "%s", problems[0].Detail)
}

// decodeReply decodes the reply. If that fails, it tries again without a
// Markdown fence, because models often write one.
func decodeReply(text string) (*modelReply, *replyFlaw) {
	if len(text) > maxReply {
		return nil, invalidJSON(fmt.Sprintf("is longer than %d bytes", maxReply))
	}
	r := new(modelReply)
	err := strictjson.Unmarshal([]byte(text), r)
	if err == nil {
		return r, nil
	}
	if inside, ok := stripFence(strings.TrimSpace(text)); ok {
		r = new(modelReply)
		if err = strictjson.Unmarshal([]byte(inside), r); err == nil {
			return r, nil
		}
	}
	return nil, invalidJSON(err.Error())
}

const markdownFence = "```"

// stripFence returns the content of a Markdown fence that encloses the whole
// text.
func stripFence(text string) (string, bool) {
	inside, opens := strings.CutPrefix(text, markdownFence)
	inside, closes := strings.CutSuffix(inside, markdownFence)
	if !opens || !closes {
		return "", false
	}
	return strings.TrimLeftFunc(inside, unicode.IsLetter), true // remove the language, such as json
}

func (v closedVocabulary) checkIntent(at, name string) *replyFlaw {
	if isDeclared(v.intents, name) {
		return nil
	}
	return invalidValue(at, "must be an intent of the registry or %q, got %s", contract.Unknown, quoteName(name))
}

// checkDomains validates a list of domains, and removes duplicates, which are
// not worth another call.
func (v closedVocabulary) checkDomains(at string, names []string) ([]string, *replyFlaw) {
	domains := make([]string, 0, len(names))
	for i, name := range names {
		if !isDeclared(v.domains, name) {
			return nil, invalidValue(fmt.Sprintf("%s/%d", at, i), "must be a domain of the registry or %q, got %s", contract.Unknown, quoteName(name))
		}
		if !slices.Contains(domains, name) {
			domains = append(domains, name)
		}
	}
	return domains, nil
}

func (v closedVocabulary) parseSubtask(at string, r *replySubtask) (contract.Subtask, *replyFlaw) {
	var none contract.Subtask
	title := sanitizeLine(*r.Title, contract.MaxSubtaskTitle+1)
	if n := utf8.RuneCountInString(title); n == 0 || n > contract.MaxSubtaskTitle {
		return none, invalidValue(at+"/title", "must be 1 to %d characters long", contract.MaxSubtaskTitle)
	}
	sub := contract.Subtask{Title: title}
	if r.Reason != nil {
		sub.Reason = sanitizeLine(*r.Reason, maxReason)
	}
	if r.Intent != nil {
		if bad := v.checkIntent(at+"/intent", *r.Intent); bad != nil {
			return none, bad
		}
		sub.Intent = *r.Intent
	}
	if r.Domains != nil {
		domains, bad := v.checkDomains(at+"/domains", *r.Domains)
		if bad != nil {
			return none, bad
		}
		if len(domains) > 0 {
			sub.Domains = domains
		}
	}
	return sub, nil
}

// isDeclared reports whether name is in the sorted list or is contract.Unknown.
func isDeclared(sorted []string, name string) bool {
	if name == contract.Unknown {
		return true
	}
	_, found := slices.BinarySearch(sorted, name)
	return found && name != contract.AnyDomain
}

// quoteName quotes an untrusted name.
func quoteName(name string) string { return strconv.Quote(truncateRunes(name, maxQuoted)) }

// sanitizeLine makes an untrusted text safe to show: one line, without control
// characters and bidirectional marks, and at most limit characters.
func sanitizeLine(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r), r == '\ufeff':
			return -1
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(truncateRunes(strings.Join(strings.Fields(text), " "), limit))
}

// truncateRunes returns the first limit characters of a text.
func truncateRunes(text string, limit int) string {
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}

// sameSubtask reports whether two subtasks are duplicates.
func sameSubtask(a, b *contract.Subtask) bool {
	return a.Title == b.Title && a.Intent == b.Intent && slices.Equal(a.Domains, b.Domains)
}

// replySchema returns the JSON schema of a reply about the agents. A model that
// follows it can only use names that they declare, without "*", and can always
// reply unknown.
func replySchema(agents []*contract.RegistryEntry) *llm.Schema {
	var intents, domains []string
	for _, a := range agents {
		intents = append(intents, a.Match.Intent...)
		domains = append(domains, a.Match.Domains...)
	}
	intent := &llm.Schema{Type: "string", Enum: sortedEnum(intents)}
	someDomains := &llm.Schema{Type: "array", Items: &llm.Schema{Type: "string", Enum: sortedEnum(domains)}}
	return objectSchema(
		llm.Property{Name: "intent", Schema: intent},
		llm.Property{Name: "domains", Schema: someDomains},
		llm.Property{Name: "subtasks", Schema: &llm.Schema{Type: "array", Items: objectSchema(
			llm.Property{Name: "title", Schema: &llm.Schema{Type: "string"}},
			llm.Property{Name: "reason", Schema: &llm.Schema{Type: "string"}},
			llm.Property{Name: "intent", Schema: intent},
			llm.Property{Name: "domains", Schema: someDomains},
		)}},
		llm.Property{Name: "confidence", Schema: &llm.Schema{Type: "number", Description: "from 0 to 1"}},
	)
}

func objectSchema(properties ...llm.Property) *llm.Schema {
	return &llm.Schema{Type: "object", Properties: properties}
}

// sortedEnum sorts the names, so that the schema is deterministic, and appends
// unknown.
func sortedEnum(names []string) []string {
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), isReserved)
	return append(names, contract.Unknown)
}
