// Package fakenet replaces parts of the network in tests of outgoing connections:
// names that resolve as the test specifies, without leaving the machine, a trap that
// counts connections to this machine, and connections in memory for synctest.
//
//	names := fakenet.NewNames(map[string][]string{"rebind.test": {"127.0.0.1"}})
//	dialer := net.Dialer{Resolver: names.Resolver(), Control: guard.Control}
//	trap := fakenet.NewTrap(t)
//	_, err := dialer.Dial("tcp", "rebind.test:"+trap.Port)
//	// err is not nil, and trap.Caught(t) is 0
package fakenet
