package policy

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// destination is one place that an argument names: a URL, a host or a recipient.
type destination struct {
	pointer string
	raw     string
	host    string   // lower case, without port
	email   string   // lower case; "" = no recipient
	url     *url.URL // nil = a host or a recipient
	inText  bool     // a URL inside a text that people read: it is not called
	unsafe  bool
}

var (
	urlInText   = regexp.MustCompile(`(?i)\bhttps?://[^\s"'<>)\]}\x60]+`)
	schemeStart = regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]{1,20}:(?://|[^\s/])`)
	scpAddress  = regexp.MustCompile(`^(?:[A-Za-z0-9_.-]+@)([A-Za-z0-9.-]+):[^\s]+$`)
	emailInText = regexp.MustCompile(`(?i)[a-z0-9._%+'-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+`)
)

func isURLArgument(l *leaf) bool {
	return l.isNamed("url", "uri", "urls", "endpoint", "link", "href", "webhook", "callback", "remote", "repository", "origin", "proxy")
}

// readDestinations returns the destinations in the arguments.
func readDestinations(leaves []leaf) []destination {
	var list []destination
	for i := range leaves {
		l := &leaves[i]
		text := strings.TrimSpace(l.text)
		switch {
		case l.hasKey("to", "cc", "bcc", "recipient", "recipients", "attendees", "invitees", "email", "emails", "participants"):
			for _, address := range emailInText.FindAllString(text, -1) {
				address = strings.ToLower(address)
				list = append(list, destination{pointer: l.pointer, raw: address, email: address, host: address[strings.LastIndexByte(address, '@')+1:]})
			}
		case isURLArgument(l) && text != "" || !l.isFreeText() && schemeStart.MatchString(text) && strings.Contains(text, "://"):
			if d, ok := parseDestination(l, text); ok {
				list = append(list, d)
			}
		case l.isNamed("host", "hostname", "domain", "server", "hosts", "fqdn") && isHostName(strings.ToLower(text)):
			list = append(list, destination{pointer: l.pointer, raw: text, host: strings.ToLower(strings.TrimSuffix(text, "."))})
		default:
			for _, link := range urlInText.FindAllString(text, -1) {
				link = strings.TrimRight(link, ".,;:!?")
				if u, err := url.Parse(link); err == nil && u.Hostname() != "" {
					list = append(list, destination{pointer: l.pointer, raw: link, host: strings.ToLower(u.Hostname()), url: u, inText: true})
				}
			}
		}
	}
	return list
}

// parseDestination reads a URL, an address of scp, or a host.
func parseDestination(l *leaf, text string) (destination, bool) {
	d := destination{pointer: l.pointer, raw: text}
	if m := scpAddress.FindStringSubmatch(text); m != nil && !strings.Contains(text, "://") {
		d.host = strings.ToLower(m[1])
		return d, true
	}
	if !strings.Contains(text, "://") && !strings.HasPrefix(text, "//") {
		if schemeStart.MatchString(text) && !isHostName(strings.ToLower(strings.SplitN(text, ":", 2)[0])) { // data:, javascript:
			d.unsafe = true
			return d, true
		}
		if !strings.Contains(text, ".") || l.isNamed("remote", "origin") && !strings.Contains(text, "/") {
			return d, false // the name of a remote
		}
		text = "//" + text
	}
	u, err := url.Parse(text)
	if err != nil { // its destination is not known
		d.unsafe = true
		return d, true
	}
	d.url, d.host = u, strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	scheme := strings.ToLower(u.Scheme)
	overSSH := (scheme == "ssh" || scheme == "git+ssh") && u.Port() != "0"
	d.unsafe = !slices.Contains([]string{"", "http", "https", "ws", "wss"}, scheme) && !overSSH || u.User != nil && !overSSH || d.host == ""
	return d, true
}

// judgeDestinations adds the findings about the destinations.
func (j *judgement) judgeDestinations() {
	for i := range j.destinations {
		d := &j.destinations[i]
		if d.unsafe {
			j.found.add(findUnsafeURL, d.pointer)
		}
		if d.host == "" || j.isTrusted(d) {
			continue
		}
		j.untrusted = j.untrusted || !d.inText
		if !d.inText && d.email == "" && isPrivateHost(d.host) {
			j.found.add(findPrivateAddress, d.pointer)
			continue
		}
		if matchesAnyHost(j.policy.dropSites, d.host) && !d.inText {
			j.found.add(findDropSite, d.pointer)
		}
		_, isAddress := parseAddress(d.host)
		switch {
		case d.inText:
		case d.email != "" || j.traits.sends || isAddress:
			j.found.add(findUnlistedTarget, d.pointer)
		default:
			j.found.add(findUnlistedHost, d.pointer)
		}
		if d.email == "" {
			j.judgeCarriedData(d)
		}
	}
}

// isTrusted reports whether the operator lists a destination, the caller names it, or it is
// the tool's own server.
func (j *judgement) isTrusted(d *destination) bool {
	if d.email != "" && (slices.Contains(j.policy.destinations, d.email) || j.context.names(d.email)) {
		return true
	}
	if matchesAnyHost(j.policy.destinations, d.host) {
		return true
	}
	if d.email != "" {
		return false
	}
	return d.host == strings.ToLower(j.call.Host) || j.context.names(d.host)
}

// Limits of the data that a URL of an untrusted host may carry.
const (
	minCarried   = 2 * copyGram // copied bytes
	randomWord   = 16
	randomLabel  = 8
	wordChanges  = 5
	labelChanges = 3
	maxLabel     = 40 // bytes of a label of a name
)

var notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]+`)

// judgeCarriedData adds findings if a URL or a host name carries data to its host.
func (j *judgement) judgeCarriedData(d *destination) {
	if d.url != nil && j.context.isVerbatim(d.raw) {
		return // its author knows it
	}
	parts := labelsBelowDomain(d.host)
	for _, label := range parts {
		if len(label) > maxLabel || slices.ContainsFunc(notAlphanumeric.Split(label, -1), func(w string) bool { return isRandom(w, randomLabel, labelChanges) }) {
			j.found.add(findOpaqueURL, d.pointer)
		}
	}
	joined := strings.Join(parts, "")
	if j.hidesText(joined) {
		j.found.add(findEncodedText, d.pointer)
	}
	var data []string
	if d.url != nil {
		data = append(data, strings.Split(d.url.Path, "/")...)
		data = append(data, d.url.Fragment)
		for pair := range strings.SplitSeq(d.url.RawQuery, "&") {
			_, value, _ := strings.Cut(pair, "=")
			if decoded, err := url.QueryUnescape(value); err == nil {
				value = decoded
			}
			data = append(data, value)
		}
	}
	for _, text := range data {
		for _, word := range notAlphanumeric.Split(text, -1) {
			if isRandom(word, randomWord, wordChanges) {
				j.found.add(findOpaqueURL, d.pointer)
			}
		}
	}
	carried := normalize(joined + strings.Join(data, " "))
	if copied := j.context.copiedBytes(carried); copied >= minCarried || copied >= copyGram && 2*copied >= len(carried) && j.isPrivateData(data) {
		j.found.add(findCopiedOutput, d.pointer)
	}
	for _, text := range data {
		if len(j.policy.scan.personalKinds(text)) > 0 && !j.context.names(strings.ToLower(text)) {
			j.found.add(findPersonalData, d.pointer)
		}
	}
}

// isPrivateData reports whether a part of a URL is personal data or a secret.
func (j *judgement) isPrivateData(data []string) bool {
	return slices.ContainsFunc(data, func(text string) bool {
		return len(j.policy.scan.personalKinds(text)) > 0 || j.policy.scan.hasSecret(text)
	})
}

// labelsBelowDomain returns the labels of a host in front of its last two.
func labelsBelowDomain(host string) []string {
	if _, ok := parseAddress(host); ok {
		return nil
	}
	labels := strings.Split(host, ".")
	return labels[:max(0, len(labels)-2)]
}

// hidesText reports whether a text contains another one that is encoded.
func (j *judgement) hidesText(text string) bool {
	return slices.ContainsFunc(j.decoder.decode(text), func(v variant) bool { return v.hidden })
}
