package classifier

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// maxSegments bounds the segments that are checked for subtasks. Requests come
// first; text after dozens of sentences is usually material.
const maxSegments = 64

// promptPart is one request of a prompt.
type promptPart struct {
	title      string
	segments   []string // of the prompt, that the title consists of
	intent     string   // contract.Unknown if no intent is meant
	domains    []string
	origins    []contract.DomainOrigin // of domains
	confidence float64
	runnersUp  []contract.IntentScore
	domainOnly bool
}

// splitPrompt returns the parts of a prompt that are requests with different
// intents, in order, and then those that ask for something no agent declares, as
// one part. It returns one part if only this part is understood, and the prompt as a
// whole is not. It returns nil if the prompt is to be classified as a whole.
func splitPrompt(prompt *lexical.Text, whole *lexical.Prediction) []promptPart {
	if prompt.IsOneClause() {
		return nil
	}
	parts := understoodParts(prompt, whole.Labelled)
	switch {
	case len(parts) == 0:
		return nil
	case len(parts) == 1 && whole.Intent != contract.Unknown && whole.Intent != parts[0].intent && whole.Confidence >= parts[0].confidence:
		return nil
	case len(parts) == 1 && len(whole.Domains) > 0: // the text beside the part may name them
		parts[0].domains, parts[0].origins = whole.Domains, lexicalOrigins(whole)
	}
	intents := make([]string, len(parts))
	for i := range parts {
		intents[i] = parts[i].intent
	}
	unknown := prompt.FindUnknownRequests(intents)
	for i := range parts {
		parts[i].removeClauses(prompt, unknown)
	}
	parts, unknown = addUnderstoodClauses(prompt, parts, unknown)
	if len(parts) == 1 && len(unknown) == 0 && !slices.Contains(intents, parts[0].intent) {
		return parts // it is surer of its intent than the whole prompt is
	}
	if len(unknown) > 0 {
		parts = append(parts, promptPart{title: joinTitles(unknown, contract.Unknown), intent: contract.Unknown, domains: []string{contract.Unknown}})
	}
	if len(parts) == 1 && !whole.Negated && (whole.Intent != contract.Unknown || whole.BestIntent != parts[0].intent) {
		return nil
	}
	return parts
}

// understoodParts returns the parts of a prompt that are requests with different
// intents, in order. In a prompt with labels, the name of a domain by itself is no
// request: whoever writes "the intent is cost_analysis, the domain azure" for a program
// asks for neither.
func understoodParts(prompt *lexical.Text, labelled bool) []promptPart {
	segments := prompt.SplitRequests()
	var parts []promptPart
	// A label next to a request was written by a program, and is not a second
	// request.
	for _, text := range segments[:min(len(segments), maxSegments)] {
		if p := prompt.Classify(text); p.Intent != contract.Unknown && !p.LabelOnly {
			parts = append(parts, promptPart{
				title: subtaskTitle(text, p.Intent), segments: []string{text}, intent: p.Intent, domains: p.Domains, origins: lexicalOrigins(p),
				confidence: p.Confidence, runnersUp: p.Alternatives, domainOnly: p.DomainOnly || labelled && p.BareDomain,
			})
		}
	}
	return mergeByIntent(dropDomainMentions(parts))
}

// addUnderstoodClauses adds the clauses that are sure requests by themselves to the parts, in
// the order of the prompt, and returns the others. The prompt was not divided before them because
// the text with them is understood with more confidence than two parts are. A part of which
// nothing remains that has its intent is dropped: "Please look." after a complaint.
func addUnderstoodClauses(prompt *lexical.Text, parts []promptPart, clauses []string) (all []promptPart, others []string) {
	known := len(parts)
	for _, clause := range clauses {
		p := prompt.Classify(clause)
		if p.Intent == contract.Unknown || p.LabelOnly || p.DomainOnly || p.JointConfidence < lexical.MinActionConfidence {
			others = append(others, clause)
			continue
		}
		parts = append(parts, promptPart{
			title: subtaskTitle(clause, p.Intent), segments: []string{clause}, intent: p.Intent, domains: p.Domains, origins: lexicalOrigins(p),
			confidence: p.Confidence, runnersUp: p.Alternatives,
		})
	}
	if len(parts) == known {
		return parts, others
	}
	rest := slices.DeleteFunc(slices.Clone(parts[:known]), func(p promptPart) bool { return !p.isUnderstood(prompt) })
	for i := range rest {
		rest[i].narrowDomains(prompt)
	}
	parts = append(rest, parts[known:]...)
	slices.SortStableFunc(parts, func(a, b promptPart) int {
		return cmp.Compare(prompt.Index(a.segments[0]), prompt.Index(b.segments[0]))
	})
	return mergeByIntent(parts), others
}

// isUnderstood reports whether a segment of the part has its intent, or most likely has it and
// contains a word that the registry knows.
func (p *promptPart) isUnderstood(prompt *lexical.Text) bool {
	return slices.ContainsFunc(p.segments, func(segment string) bool {
		own := prompt.Classify(segment)
		return own.Intent == p.intent || own.BestIntent == p.intent && prompt.HasKnownContent(segment)
	})
}

// narrowDomains sets the domains of a part that lost clauses to those of its own text, if this
// has the same intent.
func (p *promptPart) narrowDomains(prompt *lexical.Text) {
	if len(p.segments) != 1 {
		return
	}
	if own := prompt.Classify(p.segments[0]); own.Intent == p.intent {
		p.domains, p.origins = own.Domains, lexicalOrigins(own)
	}
}

// dropDomainMentions drops the parts that only name a domain, if there is a
// more confident request: "Analyse the cost of azure and databricks" does not
// ask for a databricks_review.
func dropDomainMentions(parts []promptPart) []promptPart {
	best := 0.0
	for i := range parts {
		best = max(best, parts[i].confidence)
	}
	return slices.DeleteFunc(parts, func(p promptPart) bool { return p.domainOnly && p.confidence < best })
}

// mergeByIntent merges the parts with the same intent into the first of them:
// "Review my java and python code" is one request.
func mergeByIntent(parts []promptPart) []promptPart {
	var joined []promptPart
	for _, p := range parts {
		i := slices.IndexFunc(joined, func(j promptPart) bool { return j.intent == p.intent })
		if i < 0 {
			joined = append(joined, p)
			continue
		}
		j := &joined[i]
		j.segments = append(j.segments, p.segments...)
		j.title = joinTitles(j.segments, j.intent)
		j.domains, j.origins = appendDomains(j.domains, p.domains), appendOrigins(j.origins, p.origins)
		if p.confidence > j.confidence {
			j.confidence, j.runnersUp = p.confidence, p.runnersUp
		}
	}
	return joined
}

// leadMargin is the lead in confidence that a later part needs to give the
// prompt its intent.
const leadMargin = 0.05

// combineParts builds the classification of a prompt with several requests, of which
// only the last one may be unknown. The probability that all parts are correct is the
// product of their confidences.
func combineParts(parts []promptPart) contract.Classification {
	clf := contract.Classification{Source: contract.SourceLexical}
	if len(parts) > contract.MaxSubtasks {
		parts, clf.Reason = mostConfident(parts), ReasonTooManyParts
	}
	clf.Confidence = 1
	best := 0.0
	for _, p := range parts {
		if p.intent == contract.Unknown {
			clf.Subtasks = append(clf.Subtasks, contract.Subtask{Title: p.title, Intent: p.intent, Domains: p.domains})
			continue
		}
		if p.confidence > best+leadMargin {
			best, clf.Intent, clf.Alternatives = p.confidence, p.intent, p.runnersUp
		}
		clf.Confidence *= p.confidence
		clf.Domains, clf.DomainOrigins = appendDomains(clf.Domains, p.domains), appendOrigins(clf.DomainOrigins, p.origins)
		clf.Subtasks = append(clf.Subtasks, contract.Subtask{
			Title:      p.title,
			Reason:     fmt.Sprintf("asked for by itself, confidence %.2f", p.confidence),
			Intent:     p.intent,
			Domains:    p.domains,
			Confidence: p.confidence, Alternatives: p.runnersUp,
			DomainOrigins: p.origins,
		})
	}
	clf.Confidence = math.Round(clf.Confidence*1e4) / 1e4
	if known := len(parts) - 1; known > 1 || parts[known].intent != contract.Unknown {
		clf.Alternatives = nil // each part has its own
	}
	clf.Domains = orUnknownDomain(clf.Domains, clf.Intent)
	return clf
}

// mostConfident returns the contract.MaxSubtasks most confident parts, earlier
// ones first if equal, in the order of the prompt.
func mostConfident(parts []promptPart) []promptPart {
	bySure := slices.Clone(parts)
	slices.SortStableFunc(bySure, func(a, b promptPart) int { return cmp.Compare(b.confidence, a.confidence) })
	bySure = bySure[:contract.MaxSubtasks]
	return slices.DeleteFunc(slices.Clone(parts), func(p promptPart) bool {
		return !slices.ContainsFunc(bySure, func(s promptPart) bool { return s.intent == p.intent })
	})
}

// appendDomains appends the domains that are not in the list, up to
// contract.MaxDomains.
func appendDomains(domains, more []string) []string {
	for _, d := range more {
		if len(domains) < contract.MaxDomains && !slices.Contains(domains, d) {
			domains = append(domains, d)
		}
	}
	return domains
}

// appendOrigins appends the origins of the domains that are not in the list, up to
// contract.MaxDomains.
func appendOrigins(origins, more []contract.DomainOrigin) []contract.DomainOrigin {
	for _, o := range more {
		known := slices.ContainsFunc(origins, func(have contract.DomainOrigin) bool { return have.Domain == o.Domain })
		if len(origins) < contract.MaxDomains && !known {
			origins = append(origins, o)
		}
	}
	return origins
}

// subtaskTitle returns a one-line title for a segment, without fenced code. If
// the segment is only code, the title is its intent.
func subtaskTitle(segment, intent string) string {
	text, _, _ := strings.Cut(segment, "```")
	if t := strings.TrimRight(truncateWords(text, contract.MaxSubtaskTitle), " :"); t != "" {
		return t
	}
	return intent
}

// joinTitles returns a title for several segments of one part.
func joinTitles(segments []string, intent string) string {
	titles := make([]string, len(segments))
	for i, text := range segments {
		titles[i] = subtaskTitle(text, intent)
	}
	return truncateWords(strings.Join(titles, "; "), contract.MaxSubtaskTitle)
}

// removeClauses removes the clauses, which are another part of the prompt, from the title and
// the segments.
func (p *promptPart) removeClauses(prompt *lexical.Text, clauses []string) {
	var own []string
	for _, segment := range p.segments {
		own = append(own, prompt.RemoveClauses(segment, clauses)...)
	}
	if len(clauses) > 0 && len(own) > 0 {
		p.segments, p.title = own, joinTitles(own, p.intent)
	}
}

// truncateWords puts a text on one line. If it is longer than limit characters,
// it is cut after the last word that fits, or inside the first word.
func truncateWords(text string, limit int) string {
	var b strings.Builder
	space := false // pending
	characters, words := 0, 0
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			words = b.Len()
			b.WriteByte(' ')
			characters++
			space = false
		}
		if characters++; characters > limit {
			if words == 0 {
				words = b.Len()
			}
			return strings.TrimSpace(b.String()[:words])
		}
		b.WriteRune(r) // an invalid byte becomes U+FFFD
	}
	return b.String()
}
