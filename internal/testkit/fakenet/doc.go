// Package fakenet is the network as tests of outgoing connections need it: names
// that mean what a test says, now and later, without a question that leaves the
// machine; and a trap on this machine that notices who connects.
//
//	names := fakenet.NewNames(map[string][]string{"rebind.test": {"127.0.0.1"}})
//	dialer := net.Dialer{Resolver: names.Resolver(), Control: guard.Control}
//	trap := fakenet.NewTrap(t)
//	_, err := dialer.Dial("tcp", "rebind.test:"+trap.Port)
//	// err is not nil, and trap.Caught(t) is 0
package fakenet
