// Package examples contains files to copy: a capability registry, a configuration with
// every key, and small agents. It has no code; its tests check these files, and the
// documents in docs, against the code.
//
//	capabilities.yaml  loads, and lint finds nothing in it
//	caprouter.yaml     contains every key with its default
//	alerts.yaml        selects metrics that the router exports
//	agent/             counts words; see agentkit
//	agents/            register themselves, in Go, with curl, in Python
//	golden/            routing cases, and a go test that runs them
package examples
