// Package app is the composition root: it alone knows every room. It reads the
// configuration, builds what the configuration asks for, starts it, swaps the
// View when the registry changes, and stops everything in reverse order.
//
//	Config (flags > environment > file > defaults)
//	   │ Open: everything that can fail, nothing that listens
//	   ▼
//	 Core   signer, dispatcher, classifier, router, first View
//	   │ Serve: listen, watch the registry, handle signals, drain
//	   ▼
//	 stopped, nothing left running
//
// It holds no rule of routing and no HTTP handler.
package app
