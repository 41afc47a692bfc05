package router

// IsDraining reports whether Close has begun.
func (r *Router) IsDraining() bool { return r.async.IsDraining() }
