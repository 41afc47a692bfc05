// Package egress owns what caprouter knows of addresses it talks to, or is
// reached at: which of them are this machine, which of them a stranger may send
// us to, and what a connection to any of them is made with. It does not decide
// whose an address is: its users know that.
//
//	if u.Scheme == "http" && !egress.Loopback(u.Hostname()) {
//		// a token would leave this machine in clear text
//	}
//
// # Two kinds of addresses
//
// What stands in an operator's file is the operator's word: Transport(nil), and
// no Guard. What came over the API is anybody's, and may name the router's own
// machine, its neighbours or the metadata of its cloud. It is called behind a
// Guard, which looks at the address a connection is made to, once the name has
// been resolved for the last time:
//
//	http://agent.example/ ─▶ lookup ─▶ 203.0.114.7 ─▶ Guard.Control ─▶ connect
//	                                   10.0.0.5    ─▶ *Refused
//
// How an address is spelled, and what a name meant a moment ago, makes no
// difference. CheckURL refuses early what can be seen without a lookup; it makes
// nothing safe, Control does.
//
// One thing it cannot know: networks that translate IPv6 to IPv4 under a prefix
// of their own (RFC 6052, section 2.2). Who has one must not let it translate
// private addresses.
package egress
