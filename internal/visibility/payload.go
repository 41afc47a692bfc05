package visibility

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
)

// filterData removes from the payload of a response what the caller may not see.
// The results of agents stay: a caller that may see the request may see them.
func (f *Filter) filterData(data *contract.ResponseData, titles subtaskTitles) {
	data.Results = slices.Clone(data.Results)
	for i := range data.Results {
		data.Results[i].SubtaskTitle = titles.replace(data.Results[i].SubtaskTitle)
	}
	if titles.masked && len(data.Results) > 0 {
		data.Answer = contract.AnswerText(data.Results) // its sections have titles
	}
	data.Options = f.filterOptions(data.Options)
	data.Proposal = f.filterProposal(data.Proposal)
	if data.Unsupported != nil {
		var complete bool
		data.Unsupported, complete = f.filterUnsupported(data.Unsupported)
		if data.Degraded && !complete {
			data.Answer = hiddenReason // it repeats the lists that were filtered
		}
	}
}

// filterOptions returns the readings with visible intents, labelled by visible domains.
func (f *Filter) filterOptions(list []contract.ClarificationOption) []contract.ClarificationOption {
	var filtered []contract.ClarificationOption
	for _, o := range list {
		if f.maskIntent(o.Intent) != o.Intent {
			continue
		}
		o.Domains = f.maskDomains(o.Domains)
		o.Label = contract.OptionLabel(o.Intent, o.Domains)
		filtered = append(filtered, o)
	}
	return filtered
}

// filterProposal removes the texts of policy C, unless they were written for the caller.
func (f *Filter) filterProposal(p *contract.Proposal) *contract.Proposal {
	if p == nil || f.own {
		return p
	}
	filtered := *p
	filtered.Detail, filtered.SuggestedYAML = hiddenReason, ""
	filtered.Requirements, filtered.Risks = []string{}, []string{}
	filtered.NearestReading = nil
	return &filtered
}

// filterUnsupported filters the lists of policy B. It reports whether the result is
// complete; if not, the sentence that repeats the lists is replaced, and so is a
// sentence written for another caller.
func (f *Filter) filterUnsupported(u *contract.Unsupported) (filtered *contract.Unsupported, complete bool) {
	copied := *u
	copied.Nearest = selectVisible(u.Nearest, func(n contract.NearestMiss) bool { return f.maySee(n.AgentID) })
	if r := u.NearestReading; r != nil && (!f.maySee(r.AgentID) || f.maskIntent(r.Intent) != r.Intent) {
		copied.NearestReading = nil
	}
	copied.AcceptedIntents = selectVisible(u.AcceptedIntents, func(label string) bool { return f.maskIntent(label) == label })
	copied.AcceptedDomains = selectVisible(u.AcceptedDomains, func(label string) bool { return !f.hidesDomain([]string{label}) })
	copied.Examples = selectVisible(u.Examples, f.agents.HasExample)
	complete = f.own && len(copied.Nearest) == len(u.Nearest) &&
		len(copied.AcceptedIntents) == len(u.AcceptedIntents) && len(copied.AcceptedDomains) == len(u.AcceptedDomains)
	if !complete {
		copied.Detail = hiddenReason
	}
	return &copied, complete
}
