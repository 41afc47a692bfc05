package classifier

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// maxSegments bounds how much of a prompt is looked at for subtasks. Requests
// stand in front; what is behind hundreds of sentences is material.
const maxSegments = 64

// part is one request inside a prompt.
type part struct {
	title      string
	intent     string
	domains    []string
	confidence float64
	domainOnly bool
	calibrated bool
}

// split returns the parts of a prompt that are requests of their own, by
// different intents, in order; nil when the prompt is one request.
func split(m *lexical.Model, prompt string) []part {
	segments := m.SplitRequests(prompt)
	if len(segments) < 2 {
		return nil
	}
	var parts []part
	// A label beside a request is something a program wrote, not a second request.
	for _, text := range segments[:min(len(segments), maxSegments)] {
		if p := m.Classify(text); p.Intent != contract.Unknown && !p.LabelOnly {
			parts = append(parts, part{
				title: title(text, p.Intent), intent: p.Intent, domains: p.Domains,
				confidence: p.Confidence, domainOnly: p.DomainOnly, calibrated: p.Calibrated,
			})
		}
	}
	parts = join(withoutNames(parts))
	if len(parts) < 2 {
		return nil
	}
	return parts
}

// withoutNames drops the segments that only name a domain beside a surer
// request. "Analyse the cost of azure and databricks" does not ask for a
// databricks_review.
func withoutNames(parts []part) []part {
	best := 0.0
	for i := range parts {
		best = max(best, parts[i].confidence)
	}
	return slices.DeleteFunc(parts, func(p part) bool { return p.domainOnly && p.confidence < best })
}

// join takes the parts of one intent together, where the first of them stands.
// "Review my java and python code" is one request, whatever the words say.
func join(parts []part) []part {
	var joined []part
	for _, p := range parts {
		i := slices.IndexFunc(joined, func(j part) bool { return j.intent == p.intent })
		if i < 0 {
			joined = append(joined, p)
			continue
		}
		j := &joined[i]
		j.title = shorten(j.title+"; "+p.title, contract.MaxSubtaskTitle)
		j.domains = union(j.domains, p.domains)
		j.confidence = max(j.confidence, p.confidence)
	}
	return joined
}

// fromParts makes the classification of a prompt that asks for several things.
// Calibrated confidences are probabilities, and that all of them are right has
// their product; a share of words is no probability, and the prompt is as sure as
// the least sure part.
func fromParts(parts []part) contract.Classification {
	clf := contract.Classification{Source: contract.SourceLexical}
	if len(parts) > contract.MaxSubtasks {
		parts, clf.Reason = surest(parts), ReasonTooManyParts
	}
	clf.Confidence = 1
	best := 0.0
	for _, p := range parts {
		if p.confidence > best {
			best, clf.Intent = p.confidence, p.intent
		}
		if p.calibrated {
			clf.Confidence *= p.confidence
		} else {
			clf.Confidence = min(clf.Confidence, p.confidence)
		}
		clf.Domains = union(clf.Domains, p.domains)
		clf.Subtasks = append(clf.Subtasks, contract.Subtask{
			Title:   p.title,
			Reason:  fmt.Sprintf("asked for by itself, confidence %.2f", p.confidence),
			Intent:  p.intent,
			Domains: p.domains,
		})
	}
	clf.Domains = domainsOr(clf.Domains, clf.Intent)
	return clf
}

// surest returns as many parts as there may be subtasks: the surest ones, the
// earlier of two that are as sure, in the order of the prompt.
func surest(parts []part) []part {
	bySure := slices.Clone(parts)
	slices.SortStableFunc(bySure, func(a, b part) int { return cmp.Compare(b.confidence, a.confidence) })
	bySure = bySure[:contract.MaxSubtasks]
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool {
		return !slices.ContainsFunc(bySure, func(s part) bool { return s.intent == p.intent })
	})
}

// union appends the domains that are new, up to what a classification may have.
func union(domains, more []string) []string {
	for _, d := range more {
		if len(domains) < contract.MaxDomains && !slices.Contains(domains, d) {
			domains = append(domains, d)
		}
	}
	return domains
}

// title makes a subtask's title of a segment: one line, without the code it
// brings, short enough. A segment of code alone is titled by its intent.
func title(segment, intent string) string {
	text, _, _ := strings.Cut(segment, "```")
	if t := strings.TrimRight(shorten(text, contract.MaxSubtaskTitle), " :"); t != "" {
		return t
	}
	return intent
}

// shorten puts a text on one line and, where it is longer than limit characters,
// cuts it behind the last word that fits. A word that fits nowhere is cut.
func shorten(text string, limit int) string {
	var b strings.Builder
	space := false // owed before the next character
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
