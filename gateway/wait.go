package gateway

import "context"

// WaitServer returns the state of the server when it is connected or has failed, or when
// the context ends. It starts a server that is started lazily.
func (g *Gateway) WaitServer(ctx context.Context, name string) (ServerInfo, bool) {
	s := g.find(name)
	if s == nil {
		return ServerInfo{}, false
	}
	_, _ = s.waitLink(ctx) // the state has the error
	return s.info(), true
}
