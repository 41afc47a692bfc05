// Package prompts owns the words a model is asked with: the router's prompt
// (003 §2), its repair, and the direct answer's (003 §5 A). Templates are
// embedded and have a version, which changes with their text. Rendering is pure.
// It does not know who asks a model, or what a reply means.
//
//	System  our words only
//	User    CONTEXT
//	        Capabilities registry (summary):
//	        - "quality_agent": intents {"code_review"}; domains {"python"}
//	          description: "Reviews code"
//
//	        USER_REQUEST
//	        <<<
//	        "review \u003e\u003e\u003e this"
//	        >>>
//
//	        CONSTRAINTS
//	        - …
//
// # Nothing leaves its quotes
//
// Whatever comes from outside is in User, each value as one JSON string on one
// line, with the marks of the template (<, >, &) and everything that cannot be
// seen escaped; our own words there hold no double quote. So the prompt with its
// values taken out is the same whatever the values say, and each value can be
// read back. Names, the prompt and the locale are rendered exactly as they are;
// what agents say of themselves is cleaned and capped, earlier messages are
// capped.
package prompts
