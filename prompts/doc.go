// Package prompts renders the prompts for language models: the router prompt, the
// direct answer prompt, and those of the planner and the verifier of orchestrations,
// with their repair prompts. The templates are embedded and have
// a version that changes with their text. Rendering is pure.
//
//	System  template text only
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
// # Quoting
//
// Untrusted values appear only in User, each as one JSON string on one line, with
// the delimiters of the template (<, >, &) and all invisible characters escaped.
// The template text contains no double quotes. Therefore no value can change the
// structure of the prompt, and each value can be read back. Names, the prompt and
// the locale are rendered exactly; descriptions are cleaned and truncated, and
// earlier messages are truncated.
package prompts
