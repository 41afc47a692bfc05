package capabilities

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	reloaded    = "INFO registry reloaded"
	notReloaded = "ERROR registry not reloaded"
	goodAgain   = "INFO registry file is good again"
)

func newFile(t *testing.T) string { return filepath.Join(t.TempDir(), "capabilities.yaml") }

func TestRunSeesRenameOver(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), true)
	for i := range 5 {
		agent := fmt.Sprintf("agent%d", i)
		w.replace(registryOf(agent))
		w.wantApplied(agent)
		w.wantLogged(reloaded)
	}
	if got := w.Status().Reloads; got != 5 {
		t.Errorf("got %d reloads, want 5", got)
	}
	w.wantStale(false)
}

func TestRunSeesWriteInPlace(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), true)
	w.write(registryOf("second"))
	// The write empties the file first. That may be seen, and is then mended.
	w.wantApplied("second")
}

// A file that is written in two steps is broken in between.
func TestRunSurvivesHalfWrittenFile(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), true)
	whole := registryOf("second")
	half := whole[:len(whole)-12] // ends inside a list
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteString(half)
	must(t, err)
	w.wantLogged(notReloaded)
	if s := w.Status(); !s.Stale || s.Version != versionOf(t, registryOf("first")) {
		t.Errorf("half-written: got %+v, want the first version, stale", s)
	}
	_, err = f.WriteString(whole[len(half):])
	must(t, err)
	w.wantApplied("second")
}

// Kubernetes writes a volume into a directory of its own and swaps the link
// "..data", through which the file's own link leads.
func TestRunSeesLinkSwap(t *testing.T) {
	dir := t.TempDir()
	volume := func(name, content string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		writeFile(t, filepath.Join(dir, name, "capabilities.yaml"), content)
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	volume("..v1", registryOf("first"))
	path := filepath.Join(dir, "capabilities.yaml")
	must(t, os.Symlink(filepath.Join("..data", "capabilities.yaml"), path))

	w := watch(t, path, "", true)
	volume("..v2", registryOf("second"))
	w.wantApplied("second")
	volume("..v3", registryOf("third"))
	must(t, os.RemoveAll(filepath.Join(dir, "..v1")))
	w.wantApplied("third")
	w.wantStale(false)
}

// No event tells of a change behind a link into another directory.
func TestRunPolls(t *testing.T) {
	elsewhere := newFile(t)
	writeFile(t, elsewhere, registryOf("first"))
	path := newFile(t)
	must(t, os.Symlink(elsewhere, path))
	w := watch(t, path, "", true)
	writeFile(t, elsewhere, registryOf("second"))
	w.wantApplied("second")
}

func TestRunSurvivesRemoval(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), true)
	must(t, os.Remove(w.path))
	w.wantLogged("no such file")
	w.wantStale(true)
	w.replace(registryOf("first"))
	w.wantLogged(goodAgain)
	w.wantStale(false)
	must(t, os.Remove(w.path))
	w.wantLogged("no such file")
	w.replace(registryOf("second"))
	w.wantApplied("second")
	w.wantLogged(reloaded)
	w.wantNothing()
	if s := w.Status(); s.Failures != 2 || s.Reloads != 1 {
		t.Errorf("got %d failures and %d reloads, want 2 and 1", s.Failures, s.Reloads)
	}
}

func TestRunSurvivesRemovalOfDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	must(t, os.Mkdir(dir, 0o700))
	w := watch(t, filepath.Join(dir, "capabilities.yaml"), registryOf("first"), true)
	must(t, os.RemoveAll(dir))
	w.wantLogged("no such file")
	must(t, os.Mkdir(dir, 0o700))
	w.replace(registryOf("second"))
	w.wantApplied("second")
	w.replace(registryOf("third"))
	w.wantApplied("third")
}

func TestRunKeepsLastGood(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), true)
	w.replace(brokenRegistry)
	w.wantLogged(`capabilities.yaml:2:15: unknown key "intents"; did you mean "intent"?`)
	s := w.Status()
	if want := versionOf(t, registryOf("first")); s.Version != want || !s.Stale || s.Err == nil {
		t.Errorf("broken: got %+v, want version %s, stale", s, want)
	}
	w.replace(registryOf("fixed"))
	w.wantApplied("fixed")
	w.wantLogged(reloaded)
	w.wantStale(false)

	w.replace(brokenRegistry)
	w.wantLogged(notReloaded)
	w.replace(registryOf("fixed") + "# only a comment more\n")
	w.wantLogged(goodAgain)
	w.wantStale(false)
	w.wantNothing()
}

func TestRunEndsOnLastGoodOfManyRewrites(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), true)
	for i := range 1000 {
		switch {
		case i%7 == 3:
			w.replace(brokenRegistry)
		case i%2 == 0:
			w.replace(registryOf(fmt.Sprintf("agent%d", i)))
		default:
			w.write(registryOf(fmt.Sprintf("agent%d", i)))
		}
	}
	w.replace(registryOf("last"))
	for receive(t, w.applied) != "last" {
	}
	if got, want := w.Status().Version, versionOf(t, registryOf("last")); got != want {
		// apply returns a moment before the status says so.
		must(t, w.Reload(t.Context()))
		if got = w.Status().Version; got != want {
			t.Errorf("got version %s, want that of the last file %s", got, want)
		}
	}
}

// What was written between the first load and Run is not lost.
func TestRunLooksAtOnce(t *testing.T) {
	w := watch(t, newFile(t), registryOf("first"), false)
	w.cfg.Poll = time.Hour
	w.replace(registryOf("second"))
	w.run()
	w.wantApplied("second")
}
