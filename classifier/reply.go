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
	maxReply  = 1 << 20 // bytes; a reply that is in order has a few thousand at most
	maxReason = 200     // characters of a subtask's reason
	maxDetail = 300     // characters of what is said to be wrong
	maxQuoted = 60      // characters of a wrong name in it
)

// reply is what a model is to write (003 §2). A pointer is nil where the member
// is absent or null.
type reply struct {
	Intent     *string        `json:"intent"`
	Domains    []string       `json:"domains"`
	Subtasks   []replySubtask `json:"subtasks"`
	Confidence *float64       `json:"confidence"`
}

type replySubtask struct {
	Title   *string   `json:"title"`
	Reason  *string   `json:"reason"`
	Intent  *string   `json:"intent"`
	Domains *[]string `json:"domains"`
}

// vocabulary is what a reply may name: what the registry declares, sorted, and
// contract.Unknown.
type vocabulary struct{ intents, domains []string }

func vocabularyOf(s *capabilities.Catalogue) vocabulary { return vocabulary{s.Intents, s.Domains} }

// flaw is what keeps a reply from being taken.
type flaw struct{ reason, detail string }

func badJSON(detail string) *flaw { return &flaw{llm.ReasonInvalidJSON, onOneLine(detail, maxDetail)} }

func badValue(at, format string, args ...any) *flaw {
	return &flaw{llm.ReasonInvalidValue, onOneLine(at+": "+fmt.Sprintf(format, args...), maxDetail)}
}

// parseReply reads a model's reply and takes nothing on trust: exactly one JSON
// object of exactly this shape, perhaps in a Markdown fence, and only names of
// the vocabulary, letter by letter. It is pure: the same reply gives the same
// classification, or the same flaw.
func parseReply(text string, names vocabulary) (contract.Classification, *flaw) {
	var none contract.Classification
	r, bad := decodeReply(text)
	if bad != nil {
		return none, bad
	}
	switch {
	case r.Intent == nil:
		return none, badJSON("/intent: is required")
	case r.Domains == nil:
		return none, badJSON("/domains: is required")
	case r.Confidence == nil:
		return none, badJSON("/confidence: is required")
	}
	clf := contract.Classification{Intent: *r.Intent, Subtasks: []contract.Subtask{}}
	if bad := names.checkIntent("/intent", clf.Intent); bad != nil {
		return none, bad
	}
	if clf.Domains, bad = names.domainsOf("/domains", r.Domains); bad != nil {
		return none, bad
	}
	if len(clf.Domains) == 0 && clf.Intent != contract.Unknown {
		return none, badValue("/domains", "must have 1 to %d entries; if none fits, the one is %q", contract.MaxDomains, contract.Unknown)
	}
	if c := *r.Confidence; !(c >= 0 && c <= 1) {
		return none, badValue("/confidence", "must be from 0 to 1, got %s", strconv.FormatFloat(c, 'g', 6, 64))
	}
	clf.Confidence = max(*r.Confidence, 0) // not −0
	if n := len(r.Subtasks); n > contract.MaxSubtasks {
		return none, badValue("/subtasks", "must have at most %d entries, got %d", contract.MaxSubtasks, n)
	}
	for i := range r.Subtasks {
		sub, bad := names.subtask(fmt.Sprintf("/subtasks/%d", i), &r.Subtasks[i])
		if bad != nil {
			return none, bad
		}
		if !slices.ContainsFunc(clf.Subtasks, func(s contract.Subtask) bool { return sameSubtask(&s, &sub) }) {
			clf.Subtasks = append(clf.Subtasks, sub)
		}
	}
	return clf, nil
}

// decodeReply decodes the reply, once more without a Markdown fence if it is in
// one: that is how models are used to write code.
func decodeReply(text string) (*reply, *flaw) {
	if len(text) > maxReply {
		return nil, badJSON(fmt.Sprintf("is longer than %d bytes", maxReply))
	}
	r := new(reply)
	err := strictjson.Unmarshal([]byte(text), r)
	if err == nil {
		return r, nil
	}
	if inside, ok := unfenced(strings.TrimSpace(text)); ok {
		r = new(reply)
		if err = strictjson.Unmarshal([]byte(inside), r); err == nil {
			return r, nil
		}
	}
	return nil, badJSON(err.Error())
}

const fence = "```"

// unfenced returns what stands in a Markdown fence that is all there is.
func unfenced(text string) (string, bool) {
	inside, opens := strings.CutPrefix(text, fence)
	inside, closes := strings.CutSuffix(inside, fence)
	if !opens || !closes {
		return "", false
	}
	return strings.TrimLeftFunc(inside, unicode.IsLetter), true // without the word "json"
}

func (v vocabulary) checkIntent(at, name string) *flaw {
	if declared(v.intents, name) {
		return nil
	}
	return badValue(at, "must be an intent of the registry or %q, got %s", contract.Unknown, quoted(name))
}

// domainsOf checks a list of domains and leaves out what it repeats: a name said
// twice says no more, and is not worth another call.
func (v vocabulary) domainsOf(at string, names []string) ([]string, *flaw) {
	if len(names) > contract.MaxDomains {
		return nil, badValue(at, "must have at most %d entries, got %d", contract.MaxDomains, len(names))
	}
	domains := make([]string, 0, len(names))
	for i, name := range names {
		if !declared(v.domains, name) {
			return nil, badValue(fmt.Sprintf("%s/%d", at, i), "must be a domain of the registry or %q, got %s", contract.Unknown, quoted(name))
		}
		if !slices.Contains(domains, name) {
			domains = append(domains, name)
		}
	}
	return domains, nil
}

func (v vocabulary) subtask(at string, r *replySubtask) (contract.Subtask, *flaw) {
	var none contract.Subtask
	if r.Title == nil {
		return none, badJSON(at + "/title: is required")
	}
	title := onOneLine(*r.Title, contract.MaxSubtaskTitle+1)
	if n := utf8.RuneCountInString(title); n == 0 || n > contract.MaxSubtaskTitle {
		return none, badValue(at+"/title", "must be 1 to %d characters long", contract.MaxSubtaskTitle)
	}
	sub := contract.Subtask{Title: title}
	if r.Reason != nil {
		sub.Reason = onOneLine(*r.Reason, maxReason)
	}
	if r.Intent != nil {
		if bad := v.checkIntent(at+"/intent", *r.Intent); bad != nil {
			return none, bad
		}
		sub.Intent = *r.Intent
	}
	if r.Domains != nil {
		domains, bad := v.domainsOf(at+"/domains", *r.Domains)
		if bad != nil {
			return none, bad
		}
		if len(domains) > 0 {
			sub.Domains = domains
		}
	}
	return sub, nil
}

// declared reports whether the sorted list has the name, or it is the one that
// is always allowed.
func declared(sorted []string, name string) bool {
	if name == contract.Unknown {
		return true
	}
	_, found := slices.BinarySearch(sorted, name)
	return found && name != contract.AnyDomain
}

// quoted shows a name that may be anything.
func quoted(name string) string { return strconv.Quote(cut(name, maxQuoted)) }

// onOneLine makes a text that comes from outside safe to show: on one line,
// without control characters and marks that change the direction of writing, and
// with at most limit characters.
func onOneLine(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r), r == '\ufeff':
			return -1
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(cut(strings.Join(strings.Fields(text), " "), limit))
}

// cut returns the first characters of a text.
func cut(text string, limit int) string {
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}

// sameSubtask reports whether two subtasks ask for the same: one of them would be
// done twice.
func sameSubtask(a, b *contract.Subtask) bool {
	return a.Title == b.Title && a.Intent == b.Intent && slices.Equal(a.Domains, b.Domains)
}
