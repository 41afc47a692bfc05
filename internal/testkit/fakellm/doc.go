// Package fakellm contains fake language model servers for tests. They implement
// the Gemini REST API and the OpenAI chat completions API closely enough for real
// clients, and fail as a script specifies. Only tests import the package.
//
//	s := fakellm.Start(t, fakellm.Config{
//		Protocol: fakellm.Gemini,
//		Script:   fakellm.Sequence(fakellm.Status(503), fakellm.Text(fakellm.ValidReply())),
//	})
//	// … a client with s.URL, s.Key and s.Model sends two requests …
//	s.Calls()      // 2
//	s.Requests()   // the requests, for example to check where the key was
//
// A script works with both protocols: a Behaviour describes the response (a text, a
// status, a blocked prompt, a silent connection), and each protocol encodes it.
// Requests are validated like in the real APIs: if a request has unknown members,
// an unknown model or no key, the client receives the API's error and the script is
// not called.
//
// [ReplyCases] lists the replies that models give, or may give, to a
// classification, with the expected result:
//
//	for _, r := range fakellm.ReplyCases() {
//		s := fakellm.Start(t, fakellm.Config{Script: fakellm.Always(r.Behaviour)})
//		got := // … classify with a model at s; with a short deadline if r.Endless …
//		if !r.Accepts(got.Reason) { … }
//	}
//
// [Suite] is the test suite for implementations of llm.Provider.
package fakellm
