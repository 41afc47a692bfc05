package classifier

import (
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// ImplyDomains completes a classification from any source: if none of the domains of
// an intent belongs to an agent that declares the intent, the domain that the
// registry implies is added. It depends on the
// registry alone, so that a stored classification can be used for every caller,
// and a second call changes nothing. Slices of clf are replaced and not modified.
func ImplyDomains(registry *capabilities.Catalogue, clf *contract.Classification) {
	if registry == nil || !registry.Routing.ImpliedDomains {
		return
	}
	clf.Domains, clf.DomainOrigins = implyDomain(registry, clf.Intent, clf.Domains, clf.DomainOrigins)
	cloned := false
	for i := range clf.Subtasks {
		sub := clf.Subtasks[i]
		inherits := len(sub.Domains) == 0
		switch {
		case sub.Intent == "" && inherits:
			continue // the subtask is matched like the request
		case sub.Intent == "":
			sub.Domains, sub.DomainOrigins = implyDomain(registry, clf.Intent, sub.Domains, sub.DomainOrigins)
		case inherits && registry.ServesDomain(sub.Intent, clf.Domains):
			continue
		case inherits: // the domains of the request are of no use for this intent
			sub.Domains, sub.DomainOrigins = implyDomain(registry, sub.Intent, nil, nil)
			if len(sub.Domains) == 0 && len(clf.Domains) == 0 {
				sub.Domains = []string{contract.Unknown} // matches a declared contract.AnyDomain
			}
		default:
			sub.Domains, sub.DomainOrigins = implyDomain(registry, sub.Intent, sub.Domains, sub.DomainOrigins)
		}
		if slices.Equal(sub.Domains, clf.Subtasks[i].Domains) {
			continue
		}
		if !cloned {
			clf.Subtasks, cloned = slices.Clone(clf.Subtasks), true
		}
		clf.Subtasks[i] = sub
	}
}

// implyDomain returns the domains of an intent with the implied one, if they need
// it, and their origins. contract.Unknown is removed then: the domain is known.
func implyDomain(
	registry *capabilities.Catalogue, intent string, domains []string, origins []contract.DomainOrigin,
) ([]string, []contract.DomainOrigin) {
	if registry.ServesDomain(intent, domains) {
		return domains, origins
	}
	implied := registry.ImpliedDomain(intent)
	if implied == "" {
		return domains, origins
	}
	kept := make([]string, 0, contract.MaxDomains)
	for _, d := range domains {
		if d != contract.Unknown && d != implied {
			kept = append(kept, d)
		}
	}
	origins = slices.Clone(origins)
	if len(kept) >= contract.MaxDomains {
		last := kept[contract.MaxDomains-1]
		kept = kept[:contract.MaxDomains-1]
		for i := range origins {
			if origins[i].Domain == last {
				origins[i].ReplacedBy = implied
			}
		}
	}
	return append(kept, implied), append(origins, contract.DomainOrigin{Domain: implied, Origin: contract.DomainImplied})
}

// WithoutImplied returns the classification as it was proposed, before ImplyDomains
// completed it, so that another registry can complete it. Slices of clf are not modified.
func WithoutImplied(clf contract.Classification) contract.Classification {
	clf.Domains, clf.DomainOrigins = proposedDomains(clf.Domains, clf.DomainOrigins)
	clf.Domains = orUnknownDomain(clf.Domains, clf.Intent)
	clf.Subtasks = slices.Clone(clf.Subtasks)
	for i := range clf.Subtasks {
		sub := &clf.Subtasks[i]
		sub.Domains, sub.DomainOrigins = proposedDomains(sub.Domains, sub.DomainOrigins)
	}
	return clf
}

// proposedDomains removes the implied domain, and adds the one that it replaced.
func proposedDomains(domains []string, origins []contract.DomainOrigin) (proposed []string, from []contract.DomainOrigin) {
	proposed = slices.Clone(domains)
	for _, o := range origins {
		switch {
		case o.Origin == contract.DomainImplied:
			proposed = slices.DeleteFunc(proposed, func(d string) bool { return d == o.Domain })
			continue
		case o.ReplacedBy != "":
			proposed = append(proposed, o.Domain)
			o.ReplacedBy = ""
		}
		from = append(from, o)
	}
	return proposed, from
}

// originsOf returns the origin of each domain except contract.Unknown.
func originsOf(domains []string, origin contract.OriginKind) []contract.DomainOrigin {
	var origins []contract.DomainOrigin
	for _, d := range domains {
		if d != contract.Unknown {
			origins = append(origins, contract.DomainOrigin{Domain: d, Origin: origin})
		}
	}
	return origins
}

// addModelOrigins records that a model proposed the domains.
func addModelOrigins(clf *contract.Classification) {
	clf.DomainOrigins = originsOf(clf.Domains, contract.DomainModel)
	for i := range clf.Subtasks {
		clf.Subtasks[i].DomainOrigins = originsOf(clf.Subtasks[i].Domains, contract.DomainModel)
	}
}
