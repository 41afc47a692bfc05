package app

import (
	"fmt"

	"github.com/caprouter/caprouter/internal/store"
)

// diagnoseStore reports the kind of the store and which writes it can lose. It does not
// open the store, because only one process can.
func diagnoseStore(cfg *Config) Finding {
	f := Finding{Check: "store", Level: LevelOK}
	switch {
	case cfg.Store.URL != "":
		f.Level, f.Detail = LevelWarn, "on a server of yours: whether it forces writes to disk cannot be seen from here"
		f.Fix = "set sync_interval: always in the jetstream section of its configuration"
	case cfg.Store.syncInterval() > 0:
		f.Level, f.Detail = LevelWarn, fmt.Sprintf("embedded; a power cut may lose the last %s (store.sync)", cfg.Store.Sync)
		f.Fix = "store.sync: always loses nothing"
	default:
		f.Detail = "embedded; every write is on disk before it counts"
	}
	if !cfg.Audit.Required {
		f.Level = LevelWarn
		f.Detail += "; requests are dispatched though they cannot be recorded (audit.required)"
		if f.Fix == "" {
			f.Fix = "audit.required: true refuses them"
		}
	}
	if free, err := store.FreeSpace(cfg.DataDir); err == nil && free < store.DefaultMinFree {
		f.Level = LevelFail
		f.Detail = fmt.Sprintf("the disk of %s has %d MiB left, and the store takes no writes below %d", cfg.DataDir, free>>20, store.DefaultMinFree>>20)
		f.Fix = "make room, or name another data_dir"
	}
	return f
}
