package capabilities

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// checkAliases validates `domain_aliases:`. Its keys are domains that an agent or
// a grant of the file declares; this is not checked if complete is false, because some
// declared domains are then not known.
func (c checker) checkAliases(d *fileContent, complete bool) {
	if len(d.DomainAliases) == 0 {
		return
	}
	declared := map[string]bool{}
	for id := range d.Clients {
		addAll(declared, d.Clients[id].Match.Domains)
	}
	for subject := range d.Grants {
		addAll(declared, d.Grants[subject].Domains)
	}
	delete(declared, contract.AnyDomain)
	names := slices.Sorted(maps.Keys(declared))
	byForm := map[string]string{}
	for _, name := range names {
		byForm[normalizeName(name)] = name
	}
	for _, domain := range slices.Sorted(maps.Keys(d.DomainAliases)) {
		if complete && !declared[domain] {
			detail := fmt.Sprintf("%q is not a domain of this registry", truncateText(domain))
			if near := strictyaml.Nearest(domain, names); near != "" {
				detail += fmt.Sprintf("; did you mean %q?", near)
			}
			c.mistakes.KeyErrorf(c.at.At(domain), "%s", detail)
		}
		if len(d.DomainAliases[domain]) == 0 {
			c.report("lists no alias; list at least one, or leave the domain out", domain)
		}
		// Not by tags, because the file's own domains decide, and maps have no order.
		seen := map[string]bool{}
		for i, alias := range d.DomainAliases[domain] {
			if problem := aliasProblem(alias, byForm); problem != "" {
				c.report(problem, domain, i)
			} else if seen[alias] {
				c.report(fmt.Sprintf("%q is listed twice", alias), domain, i)
			}
			seen[alias] = true
		}
	}
}

// hasInvalidDomains reports whether the domains of an agent or a grant could not be
// decoded, for example because the key above them is misspelt.
func hasInvalidDomains(doc *strictyaml.Document, d *fileContent) bool {
	if d.Clients == nil && doc.IsInvalid("clients") {
		return true
	}
	for id := range d.Clients {
		if doc.IsInvalid("clients", id, "match", "domains") {
			return true
		}
	}
	for subject := range d.Grants {
		if doc.IsInvalid("grants", subject, "domains") {
			return true
		}
	}
	return false
}

// aliasProblem returns why a text is not a valid alias; "" if it is one. The names
// of the domains are keyed by their normalized form.
func aliasProblem(alias string, domains map[string]string) string {
	switch {
	case nameProblem(alias) != "":
		return nameProblem(alias)
	case !strings.ContainsFunc(alias, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }):
		return fmt.Sprintf("%q contains no letter or digit, so no text matches it", alias)
	case domains[normalizeName(alias)] != "":
		return fmt.Sprintf("%q is the domain %s itself; remove the alias", alias, domains[normalizeName(alias)])
	}
	return ""
}

func addAll(set map[string]bool, names []string) {
	for _, name := range names {
		set[name] = true
	}
}
