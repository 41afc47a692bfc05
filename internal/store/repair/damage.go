package repair

import "fmt"

// Damage is an unreadable part of a file that was removed, or would be.
type Damage struct {
	// From and To are the first and the last sequence that may be lost; some of them
	// may have been deleted before. From is 0 if it is not known.
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Bytes int    `json:"bytes"`
}

// String describes the messages that may be lost.
func (d Damage) String() string {
	switch {
	case d.From == 0:
		return fmt.Sprintf("%d unreadable bytes", d.Bytes)
	case d.From >= d.To:
		return fmt.Sprintf("message %d (%d bytes)", d.From, d.Bytes)
	}
	return fmt.Sprintf("messages %d to %d (%d bytes)", d.From, d.To, d.Bytes)
}

// FileDamage is the damage of one place in a file.
type FileDamage struct {
	Stream string `json:"-"`
	File   string `json:"file"`
	Damage
	// Unfinished: it is the end of the stream, and may be a write that was never
	// acknowledged.
	Unfinished bool   `json:"unfinished"`
	Kept       string `json:"kept,omitzero"` // the copy of the damaged file
}
