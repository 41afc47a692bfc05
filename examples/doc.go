// Package examples holds what one copies to begin with: a capability registry,
// a configuration with every key, and a small agent. It has no code of its own;
// its tests hold these files, and the documents in docs, to the code.
//
//	capabilities.yaml  loads, and lint finds nothing in it
//	caprouter.yaml     names every key, each with its default
//	agent/             counts words; see agentkit
//	golden/            routing cases, and a go test that runs them
package examples
