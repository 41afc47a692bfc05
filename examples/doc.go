// Package examples contains files to copy: a capability registry, a configuration with
// every key, and a small agent. It has no code; its tests check these files, and the
// documents in docs, against the code.
//
//	capabilities.yaml  loads, and lint finds nothing in it
//	caprouter.yaml     contains every key with its default
//	agent/             counts words; see agentkit
//	golden/            routing cases, and a go test that runs them
package examples
