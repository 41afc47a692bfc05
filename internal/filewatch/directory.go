package filewatch

import (
	"log/slog"

	"github.com/fsnotify/fsnotify"
)

// watchedDirectory is a watch on a directory. If the system refuses a watch, because
// their number is limited, the channels are nil and the poll remains.
type watchedDirectory struct {
	path    string
	events  <-chan fsnotify.Event
	errors  <-chan error
	watcher *fsnotify.Watcher // nil if the system refused
}

func watchDirectory(path string, log *slog.Logger) *watchedDirectory {
	d := &watchedDirectory{path: path}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("no file events: the file is polled instead", "path", path, "error", err)
		return d
	}
	d.watcher, d.events, d.errors = watcher, watcher.Events, watcher.Errors
	d.restoreWatch()
	return d
}

// restoreWatch restores the watch if the directory was removed and created again. It
// has no effect while the watch exists. It fails while there is no directory, and
// then the file is missing as well, which is reported.
func (d *watchedDirectory) restoreWatch() {
	if d.watcher != nil {
		_ = d.watcher.Add(d.path)
	}
}

func (d *watchedDirectory) closeWatch() {
	if d.watcher != nil {
		_ = d.watcher.Close()
	}
}
