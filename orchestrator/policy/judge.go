package policy

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// judgement is the examination of one call. It is owned by one goroutine.
type judgement struct {
	policy       *Policy
	call         *Call
	traits       traits
	context      *context
	leaves       []leaf
	variants     [][]variant // of each leaf
	destinations []destination
	decoder      decoder
	found        *findings
	untrusted    bool // the call names a destination that is not trusted
}

// Judge decides about a call. It is safe for concurrent use.
func (p *Policy) Judge(c *Call) Verdict {
	j := &judgement{policy: p, call: c, found: newFindings()}
	var readable bool
	j.leaves, readable = readLeaves(c.Arguments)
	if !readable || !isObject(c.Arguments) {
		j.found.add(findUnreadable, "")
	}
	for i := range j.leaves {
		j.variants = append(j.variants, j.decoder.decode(j.leaves[i].text))
	}
	j.traits = readTraits(c, j.leaves)
	j.context = newContext(c, p.scan)
	j.destinations = readDestinations(j.leaves)
	j.judgeDestinations()
	j.judgePaths()
	j.judgeCommands()
	j.judgeTexts()
	j.judgeSplitSecrets()
	if j.decoder.exceeded || j.context.compared > maxComparison {
		j.found.add(findUnreadable, "")
	}
	v := p.decide(c, j)
	v.Findings = j.found.list
	return v
}

func isObject(raw []byte) bool {
	text := strings.TrimSpace(string(raw))
	return text == "" || strings.HasPrefix(text, "{")
}

// addSecret adds the finding for a secret.
func (j *judgement) addSecret(pointer string) {
	if j.traits.local && !j.untrusted {
		j.found.add(findStoredSecret, pointer)
		return
	}
	j.found.add(findSecret, pointer)
}

// Lengths, in letters and digits, of copied outputs.
const (
	maxPublished = 48  // in what everyone can read
	maxSearched  = 120 // in what is sent to a search engine or the like
	minHidden    = 8   // of a hidden text
)

// judgeTexts examines every text, as it is and decoded.
func (j *judgement) judgeTexts() {
	for i := range j.leaves {
		l := &j.leaves[i]
		if j.policy.scan.memberIsSecret(l.member, l.text) {
			j.addSecret(l.pointer)
		}
		for _, v := range j.variants[i] {
			j.judgeText(l, v)
		}
		if l.decoded {
			j.judgeText(l, variant{text: l.text, hidden: true, depth: 1})
		}
	}
}

func (j *judgement) judgeText(l *leaf, v variant) {
	if v.text == "" {
		return
	}
	plain := normalize(v.text)
	if j.policy.scan.hasSecret(v.text) || j.context.secrets.isIn(plain) {
		j.addSecret(l.pointer)
	}
	if j.traits.local && !j.untrusted {
		return
	}
	// Data that an output contains in this form, such as the cursor of a page, was not
	// encoded by the planner.
	if v.hidden && len(plain) >= minHidden && !j.context.isVerbatim(l.text) {
		j.found.add(findEncodedText, l.pointer)
	}
	if slices.ContainsFunc(j.policy.scan.personalKinds(v.text), func(kind string) bool { return slices.Contains(identifying, kind) }) {
		j.found.add(findPersonalData, l.pointer)
	}
	if limit := j.copyLimit(l); len(plain) >= limit && j.context.copiedBytes(plain) >= limit {
		j.found.add(findCopiedOutput, l.pointer)
	}
}

// copyLimit returns how much of earlier outputs an argument may contain.
func (j *judgement) copyLimit(l *leaf) int {
	switch {
	case isURLArgument(l): // judgeCarriedData judges it
	case j.untrusted:
		return minCarried
	case j.traits.publishes:
		return maxPublished
	case j.traits.searches:
		return maxSearched
	}
	return math.MaxInt
}

// tokenForm is the form of secrets that are found in joined texts: one word.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_.+/=-]{16,}$`)

// maxJoined bounds the earlier calls whose arguments are joined.
const maxJoined = 16

// judgeSplitSecrets examines the arguments joined with each other and with those of earlier
// calls.
func (j *judgement) judgeSplitSecrets() {
	var joined, last strings.Builder
	for i := range j.leaves {
		joined.WriteString(strings.TrimSpace(j.leaves[i].text))
		for _, v := range j.variants[i] {
			last.WriteString(normalize(v.text))
		}
	}
	if j.joinsToSecret(joined.String()) {
		j.addSecret("")
	}
	for i := range j.leaves {
		l := &j.leaves[i]
		text := strings.TrimSpace(l.text)
		count := 0
		for _, sent := range slices.Backward(j.context.earlier) {
			if sent.action != j.call.action() || sent.pointer != l.pointer || count == maxJoined {
				continue
			}
			count++
			text = strings.TrimSpace(sent.text) + text
			if j.joinsToSecret(text) {
				j.addSecret(l.pointer)
			}
		}
	}
	if j.context.secrets.isCompleted(j.context.sent, last.String()) {
		j.addSecret("")
	}
}

// joinsToSecret reports whether joined texts contain a secret of one word.
func (j *judgement) joinsToSecret(text string) bool {
	return slices.ContainsFunc(j.policy.scan.secretsOfText(text), tokenForm.MatchString)
}
