package prompts

// What tests outside the package look at.
var (
	Quote  = func(s string) string { return string(quoteJSON(s)) }
	Clean  = cleanText
	Clip   = truncateRunes
	Hidden = isInvisible
)

// The bounds tests hold renderings to.
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
