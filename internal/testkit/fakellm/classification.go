package fakellm

import (
	"fmt"
	"strings"
)

// What Valid says.
const (
	ValidIntent     = "code_review"
	ValidDomain     = "python"
	ValidConfidence = 0.93
)

// ValidReply is a classification as the router asks for it.
func ValidReply() string { return Classification(ValidIntent, ValidDomain, ValidConfidence) }

// Classification is the JSON of a classification with one domain.
func Classification(intent, domain string, confidence float64) string {
	d := defaults(intent, domain)
	d.confidence = fmt.Sprint(confidence)
	return d.String()
}

// draft is a classification whose members are any JSON, or none: a slip is made
// by replacing one.
type draft struct{ intent, domains, subtasks, confidence string }

func defaults(intent, domain string) draft {
	return draft{
		intent: quote(intent), domains: "[" + quote(domain) + "]", confidence: fmt.Sprint(ValidConfidence),
		subtasks: fmt.Sprintf(`[{"title":"Review error handling","reason":"asked for","intent":%s,"domains":[%s]}]`, quote(intent), quote(domain)),
	}
}

// String renders the members there are.
func (d draft) String() string {
	var members []string
	for _, m := range [][2]string{{"intent", d.intent}, {"domains", d.domains}, {"subtasks", d.subtasks}, {"confidence", d.confidence}} {
		if m[1] != "" {
			members = append(members, `"`+m[0]+`":`+m[1])
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// quote makes a JSON string of a name of the registry, which needs no escapes.
func quote(s string) string { return `"` + s + `"` }
