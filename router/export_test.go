package router

// Stopping reports whether nothing more of what nobody waits for is given out.
func (r *Router) Stopping() bool { return r.stopping.Load() }
