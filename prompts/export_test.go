package prompts

// What tests outside the package look at.
var (
	Quote  = func(s string) string { return string(quote(s)) }
	Clean  = clean
	Clip   = clip
	Hidden = hidden
)

// The bounds tests hold renderings to.
const (
	CutMark        = cutMark
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
