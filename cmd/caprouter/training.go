package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/lexical"
)

// quietTraining is the time from which a training is shown: those of most registries are
// shorter.
const quietTraining = time.Second

// showTraining returns the context of the command, in which a training of the lexical
// classifier that takes long shows its progress on a terminal.
func showTraining(cmd *cobra.Command) context.Context {
	return lexical.WithProgress(cmd.Context(), newTrainingReport(terminal.NewProgressLine(cmd.ErrOrStderr()), time.Now))
}

func newTrainingReport(line *terminal.ProgressLine, now func() time.Time) func(done, total int) {
	began, shown := now(), false
	return func(done, total int) {
		switch {
		case done == total && shown:
			line.Clear()
			shown = false
		case done < total && now().Sub(began) >= quietTraining:
			line.PrintLine(fmt.Sprintf("training the lexical classifier: %d%%", 100*done/total))
			shown = true
		}
	}
}
