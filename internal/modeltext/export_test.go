package modeltext

// Exported for the external tests.
var (
	RestoreValues = restoreValues
	TruncateText  = truncateText
	RemoveImages  = removeImages
)
