package responsejson

import (
	"github.com/caprouter/caprouter/contract"
)

func (e *encoder) decision(d *contract.Decision) {
	e.out = append(e.out, '{')
	e.stringMember("decision_id", d.DecisionID)
	e.classification(&d.Classification)
	arrayMember(e, "candidates", d.Candidates, (*encoder).candidate)
	e.intMember("candidates_total", d.CandidatesTotal)
	e.stringsMember("chosen", d.Chosen)
	e.stringsMember("standby", d.Standby)
	e.valueOrNull("tie_break", d.TieBreak == nil, d.TieBreak)
	e.valueOrNull("fallback_used", d.FallbackUsed == nil, d.FallbackUsed)
	e.optionalString("only_agent", d.OnlyAgent)
	e.stringMember("registry_version", d.RegistryVersion)
	e.optionalString("fleet_revision", d.FleetRevision)
	e.floatsMember("timings_ms", d.TimingsMS)
	optionalArray(e, "hidden", d.Hidden, (*encoder).candidate)
	e.out = append(e.out, '}')
}

func (e *encoder) candidate(c *contract.Candidate) {
	e.out = append(e.out, '{')
	e.stringMember("agent_id", c.AgentID)
	if c.Subtask != nil {
		e.intMember("subtask", *c.Subtask)
	}
	e.floatMember("score", c.Score)
	e.name("parts")
	e.out = append(e.out, '{')
	e.floatMember("intent", c.Parts.Intent)
	e.floatMember("domains", c.Parts.Domains)
	e.floatMember("constraints", c.Parts.Constraints)
	e.out = append(e.out, '}')
	e.stringsMember("matched_domains", c.MatchedDomains)
	e.boolMember("eligible", c.Eligible)
	e.stringMember("role", string(c.Role))
	arrayMember(e, "gates", c.Gates, (*encoder).gate)
	e.out = append(e.out, '}')
}

func (e *encoder) gate(g *contract.Gate) {
	e.out = append(e.out, '{')
	e.stringMember("gate", g.Gate)
	e.stringMember("reason", g.Reason)
	e.out = append(e.out, '}')
}

// classification appends a classification without a model. Those with one waited for it
// for much longer than they take to encode.
func (e *encoder) classification(c *contract.Classification) {
	if c.ModelUse != nil {
		e.valueMember("classification", c)
		return
	}
	e.name("classification")
	e.out = append(e.out, '{')
	e.stringMember("intent", c.Intent)
	e.stringsMember("domains", c.Domains)
	optionalArray(e, "domain_origins", c.DomainOrigins, (*encoder).domainOrigin)
	arrayMember(e, "subtasks", c.Subtasks, (*encoder).subtask)
	e.floatMember("confidence", c.Confidence)
	e.stringMember("source", string(c.Source))
	e.optionalString("reason", c.Reason)
	e.floatMember("latency_ms", c.LatencyMS)
	if c.Cascade != nil {
		e.valueMember("cascade", c.Cascade)
	}
	optionalArray(e, "alternatives", c.Alternatives, (*encoder).intentScore)
	e.optionalTrue("tied", c.Tied)
	e.optionalFloat("tied_confidence", c.TiedConfidence)
	e.optionalFloat("required_confidence", c.RequiredConfidence)
	if len(c.Evidence) > 0 {
		e.valueMember("evidence", c.Evidence)
	}
	e.out = append(e.out, '}')
}

func (e *encoder) domainOrigin(o *contract.DomainOrigin) {
	e.out = append(e.out, '{')
	e.stringMember("domain", o.Domain)
	e.stringMember("origin", string(o.Origin))
	e.optionalString("text", o.Text)
	e.optionalString("replaced_by", o.ReplacedBy)
	e.out = append(e.out, '}')
}

func (e *encoder) intentScore(s *contract.IntentScore) {
	e.out = append(e.out, '{')
	e.stringMember("intent", s.Intent)
	e.floatMember("confidence", s.Confidence)
	e.out = append(e.out, '}')
}

func (e *encoder) subtask(s *contract.Subtask) {
	e.out = append(e.out, '{')
	e.stringMember("title", s.Title)
	e.optionalString("reason", s.Reason)
	e.optionalString("intent", s.Intent)
	e.optionalStrings("domains", s.Domains)
	e.optionalFloat("confidence", s.Confidence)
	optionalArray(e, "alternatives", s.Alternatives, (*encoder).intentScore)
	e.optionalTrue("tied", s.Tied)
	e.optionalFloat("tied_confidence", s.TiedConfidence)
	optionalArray(e, "domain_origins", s.DomainOrigins, (*encoder).domainOrigin)
	e.out = append(e.out, '}')
}
