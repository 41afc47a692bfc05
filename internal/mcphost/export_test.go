package mcphost

// Reconcile is reconcile, for tests that cannot wait for it.
var Reconcile = (*Host).reconcile
