// Package fleet holds the agents that register themselves: what they declare, and
// their leases. It is a source of the registry.
//
//	PUT  /agents/{id} ─▶ Register  ─▶ store ─▶ roster ─┐
//	POST …/heartbeat  ─▶ Heartbeat ─────────▶ roster   ├─▶ State: entries with their instances
//	POST …/drain      ─▶ Drain     ─▶ store ─▶ roster ─┤
//	DELETE            ─▶ Deregister ▶ store ─▶ roster ─┘
//
// An agent has one instance for each of its processes. Its entry is what the instance
// that registered last declares, and the addresses are those of all instances. The
// registry limits the entry to what the operator grants to the agent.
//
//	           Register, Heartbeat
//	(new) ─▶ active ──────────────▶ active
//	          │  └─ Drain ─▶ draining
//	          │ no heartbeat within the TTL (draining as well)
//	          ▼
//	        expired ── Register, Heartbeat ─▶ active
//	          │ 10 minutes
//	          ▼
//	        (removed)
//
// Registrations are durable. A heartbeat is not stored: after a restart, every
// lease begins anew with its whole TTL.
//
// Processes that share a store follow each other's records, and tell each other the
// heartbeats that they have accepted (Config.Peers). A lease therefore ends only where
// no heartbeat has arrived from any of them.
package fleet
