// Package subprocess starts MCP servers as processes and ends them with all their
// descendants.
//
// A server such as npx starts other processes, and outlives a parent that is killed.
// Therefore a supervisor is started between the two, which is the leader of a process
// group and holds the read end of a pipe, the lifeline:
//
//	caprouter ──▶ supervisor ──▶ npx ──▶ node …        one process group
//	    └─ lifeline ─▶┘
//
// The lifeline closes if the parent closes it, or dies in any way. The supervisor then
// sends SIGTERM to the group and, after [TermGrace], SIGKILL. If the server exits, the
// supervisor kills the rest of the group.
//
// A process that leaves the group (setsid) and a supervisor that is killed at the same
// moment as its parent are not covered.
package subprocess
