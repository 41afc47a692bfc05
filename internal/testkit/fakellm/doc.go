// Package fakellm stands in for the makers of language models: HTTP servers that
// speak the Gemini REST API and the OpenAI chat completions API closely enough
// for their clients not to see a difference, and that misbehave as a script
// says. Tests alone import it.
//
//	s := fakellm.Start(t, fakellm.Config{
//		Wire:   fakellm.Gemini,
//		Script: fakellm.Sequence(fakellm.Status(503), fakellm.Text(fakellm.Valid())),
//	})
//	// … a client with s.URL, s.Key and s.Model asks twice …
//	s.Calls()      // 2
//	s.Requests()   // what was asked, and where the key was
//
// One script serves both wires: a Behaviour says what happens (a text, a status,
// a blocked prompt, a connection that goes silent), and each wire has its own
// words for it. A request is checked as the real server does, so a client that
// sends a member the server does not know, an unknown model or no key hears of
// it in the server's own envelope, before the script is asked.
//
// [Replies] is the list of everything a model has been seen, or must be feared,
// to answer a classification with, and what is to come of it:
//
//	for _, r := range fakellm.Replies() {
//		s := fakellm.Start(t, fakellm.Config{Script: fakellm.Always(r.Behaviour)})
//		got := // … classify with a model at s, with a short deadline if r.Endless …
//		if !r.Right(got.Reason) { … }
//	}
//
// [Suite] is what every implementation of llm.Provider has to pass.
package fakellm
