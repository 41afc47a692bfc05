package classifier

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/email"
	"github.com/caprouter/caprouter/internal/lexical"
)

// classifyMail classifies the text of the sender of a mail. If it is not understood by itself, the subject,
// and then the text that it refers to, count as well; neither is a request of its own.
func classifyMail(in *Input, m *email.Message) contract.Classification {
	clf := classifyText(in, m.Body)
	// The subject of a reply is that of an earlier request: "Re: cancel my booking" above "Thank you!".
	onlyThanks := m.IsReply && lexical.AsksNothing(m.Body)
	if m.Subject != "" && m.Subject != m.Body && !onlyThanks {
		addSubject(in, m, &clf)
	}
	if m.Reference != "" && isUnknown(&clf) {
		if whole := classifyWhole(in, m.Body+"\n\n"+m.Reference); !isUnknown(&whole) {
			return whole
		}
	}
	return clf
}

// addSubject completes a classification of the body with that of subject and body: the intent if the
// body has none, and the domains if it names none.
func addSubject(in *Input, m *email.Message, clf *contract.Classification) {
	if len(clf.Subtasks) > 0 {
		return
	}
	whole := classifyWhole(in, m.Subject+"\n\n"+m.Body)
	switch {
	case isUnknown(&whole):
	case isUnknown(clf):
		*clf = whole
	case whole.Intent == clf.Intent && len(clf.DomainOrigins) == 0:
		clf.Domains, clf.DomainOrigins = whole.Domains, whole.DomainOrigins
	}
}

// isUnknown reports whether nothing of a text was understood.
func isUnknown(clf *contract.Classification) bool {
	return clf.Intent == contract.Unknown && len(clf.Subtasks) == 0
}

// evidenceText returns the parts of a prompt that its lexical classification may have read.
func evidenceText(prompt string) string {
	m := email.Parse(prompt)
	text := m.Body
	if m.Subject != "" && m.Subject != m.Body {
		text = m.Subject + "\n\n" + text
	}
	if m.Reference != "" {
		text += "\n\n" + m.Reference
	}
	return text
}
