// Package egress protects outgoing connections against server-side request
// forgery (SSRF). It decides which addresses are this machine and which ones may
// be called, and builds HTTP transports and clients with safe settings. Its users
// decide who may name an address.
//
//	if u.Scheme == "http" && !egress.IsLoopback(u.Hostname()) {
//		// a token would leave this machine in clear text
//	}
//
// # Two kinds of addresses
//
// Addresses in the operator's files are trusted: connect to them with the policy
// [Unrestricted]. Addresses that arrived over the API may name the router's own
// machine, its neighbours or the metadata service of its cloud: connect to them
// with a [Guard]. It checks the address of each connection after name resolution:
//
//	http://agent.example/ ─▶ lookup ─▶ 203.0.114.7 ─▶ Guard.Control ─▶ connect
//	                                   10.0.0.5    ─▶ *BlockedError
//
// Therefore neither the spelling of an address nor DNS rebinding evades it.
// Guard.CheckURL rejects some URLs before a lookup. It does not replace
// Control.
//
// One case is not detected: networks that translate IPv6 to IPv4 under a prefix
// of their own (RFC 6052, section 2.2). The operator of such a network must
// prevent the translation to private addresses.
package egress
