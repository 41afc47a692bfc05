package capabilities

import (
	"log/slog"

	"github.com/fsnotify/fsnotify"
)

// directory is a watch on a directory. Where the system has no watch to give
// (it bounds them) its channels are silent, and the poll is all there is.
type directory struct {
	path   string
	events <-chan fsnotify.Event
	errors <-chan error

	watcher *fsnotify.Watcher // nil without a watch
}

func watchDirectory(path string, log *slog.Logger) *directory {
	d := &directory{path: path}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("no file events; the registry is looked at now and then instead", "path", path, "error", err)
		return d
	}
	d.watcher, d.events, d.errors = watcher, watcher.Events, watcher.Errors
	d.renew()
	return d
}

// renew watches the directory again if it was removed and made anew meanwhile.
// It does nothing when the watch still holds, and fails while there is no
// directory; then the file is gone too, which is what gets reported.
func (d *directory) renew() {
	if d.watcher != nil {
		_ = d.watcher.Add(d.path)
	}
}

func (d *directory) close() {
	if d.watcher != nil {
		_ = d.watcher.Close()
	}
}
