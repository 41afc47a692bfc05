// Package session stores what the next request of a caller's session needs: the
// turns of the conversation, the last classification, which agent asked for
// input, and which readings a clarification offered. Texts are masked before
// they are stored. A session that is lost or cannot be read only makes the next
// classification less precise, so no request fails because of it.
//
// A request does not need a classifier if its classification is pinned: the
// caller chose one of the readings, an agent asked for this turn, or the
// session's trigger reuses the last classification.
//
//	s := sessions.Load(ctx, session.Key(caller, request.SessionID))
//	if pinned, agent := s.Pin(session.Next{Trigger: session.UserTurn, Prompt: prompt}); pinned != nil {
//		classification = pinned.Current() // and only this agent may serve the request, if it is not ""
//	}
//	err := sessions.Update(ctx, key, func(s session.Session) session.Session { return s.After(&ended) })
package session
