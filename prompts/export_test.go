package prompts

// Functions for external tests.
var (
	Quote  = func(s string) string { return string(quoteJSON(s)) }
	Clean  = cleanText
	Clip   = truncateRunes
	Hidden = isInvisible
)

// Limits for external tests.
const (
	CutMark        = truncationMark
	MaxTurns       = maxTurns
	MaxTurn        = maxTurn
	MaxTag         = maxTag
	MaxProblem     = maxProblem
	MaxDescription = maxDescription
	MaxUtterance   = maxUtterance
	MaxExamples    = maxExamples
	MaxNotFor      = maxNotFor
	MaxSummary     = maxSummary
)
