package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// VerifyReplicasConfig selects the log of a store that several replicas use. Log, Signer and
// Members are required.
type VerifyReplicasConfig struct {
	Log      *store.Log
	Heads    *store.Bucket // see Config; nil = none are stored
	HeadFile string        // head in the data directory of a replica; "" = only those in the store are used
	Signer   Signer
	Members  VerifyFunc // verifies the heads of the other replicas
	// Progress is called with the number of messages read, and about how many there
	// are.
	Progress func(done, total uint64)
}

// LogReport is the result of VerifyReplicas, with a report of each chain, in the order of
// their writers.
type LogReport struct {
	Chains []*Report `json:"chains"`
}

// OK reports whether there is no problem.
func (r *LogReport) OK() bool {
	return !slices.ContainsFunc(r.Chains, func(c *Report) bool { return !c.OK() })
}

// maxUnpublished is the time that the batches behind the newest head in the store may span:
// a head is stored at most a second after its batch, and later while the server elects
// a leader.
const maxUnpublished = 10 * time.Second

// VerifyReplicas checks the chains of all replicas together. The routers may be running. The
// error means that the log could not be read; problems of the log are in the report.
func VerifyReplicas(ctx context.Context, cfg VerifyReplicasConfig) (_ *LogReport, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("verify the audit log: %w", err)
		}
	}()
	if cfg.Log == nil || cfg.Signer == nil || cfg.Members == nil {
		return nil, errors.New("incomplete configuration")
	}
	if cfg.Progress == nil {
		cfg.Progress = func(uint64, uint64) {}
	}
	v := &logVerifier{cfg: cfg, signer: headSigner{cfg.Signer, cfg.Members}, chains: map[string]*chainReader{}}
	// Read the heads before the stream, see Verify.
	heads, err := v.readHeads(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.readMessages(ctx); err != nil {
		return nil, err
	}
	newer, err := v.readHeads(ctx)
	if err != nil {
		return nil, err
	}
	for writer, h := range newer {
		before := heads[writer]
		switch {
		case before.status == headAbsent: // a new chain
			heads[writer] = h
		case h.status == headTrusted && before.status == headTrusted && h.head.Chain == before.head.Chain:
			v.chain(ctx, writer).signedUpTo = h.head.Batch
		}
	}
	return v.report(ctx, heads), nil
}

// logVerifier verifies all chains. One goroutine owns it.
type logVerifier struct {
	cfg    VerifyReplicasConfig
	signer Signer
	chains map[string]*chainReader
	done   uint64 // messages read
}

func (v *logVerifier) chain(ctx context.Context, writer string) *chainReader {
	x := v.chains[writer]
	if x == nil {
		x = newChainReader(writer, func(seq uint64) ([]byte, error) {
			m, err := v.cfg.Log.Get(ctx, seq)
			return m.Data, err
		})
		x.maxUnsigned = maxUnpublished
		v.chains[writer] = x
	}
	return x
}

// readHeads returns the heads by writer. If a head is in the file and in the store, it returns
// the better one.
func (v *logVerifier) readHeads(ctx context.Context) (map[string]storedHead, error) {
	heads := map[string]storedHead{}
	if v.cfg.Heads != nil {
		table := headTable{bucket: v.cfg.Heads, signer: v.signer}
		rows, err := table.list(ctx)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			heads[rows[i].writer] = rows[i]
		}
	}
	if v.cfg.HeadFile == "" {
		return heads, nil
	}
	h, _, how, err := readHead(v.cfg.HeadFile, v.signer)
	if err != nil || h == nil {
		return heads, err
	}
	row, stored := heads[h.Writer]
	isNewer := how == headTrusted && row.status == headTrusted && h.Batch > row.head.Batch
	if !stored || isNewer || statusRank(how) < statusRank(row.status) {
		heads[h.Writer] = storedHead{writer: h.Writer, head: h, status: how}
	}
	return heads, nil
}

// maxCatchUps bounds the passes over what is written while the log is read.
const maxCatchUps = 10

// readMessages reads the stream, which may grow meanwhile. A batch that is rewritten between
// the two reads of a pass is in the next one, and so is the record that announces it.
func (v *logVerifier) readMessages(ctx context.Context) error {
	rewrittenFrom, chainFrom := uint64(1), uint64(1)
	for pass := range maxCatchUps {
		info, err := v.cfg.Log.Info(ctx)
		if err != nil {
			return err
		}
		found := false
		for _, subject := range []string{"audit.*.bare.*", "audit.*.restated.*"} {
			err := v.readSubject(ctx, subject, rewrittenFrom, info.Msgs, func(store.Message) { found = true })
			if err != nil {
				return err
			}
		}
		if pass > 0 && !found {
			break
		}
		if err := v.readSubject(ctx, "audit.*", chainFrom, info.Msgs, func(m store.Message) { chainFrom = m.Seq + 1 }); err != nil {
			return err
		}
		rewrittenFrom = info.Last + 1
	}
	v.cfg.Progress(v.done, v.done)
	return nil
}

func (v *logVerifier) readSubject(ctx context.Context, subject string, from, total uint64, seen func(store.Message)) error {
	return v.cfg.Log.Read(ctx, store.ReadFrom{Subject: subject, Seq: from}, func(m store.Message) error {
		writer, _ := writerOf(m.Subject)
		v.chain(ctx, writer).addMessage(m)
		seen(m)
		if v.done++; v.done%progressEvery == 0 {
			v.cfg.Progress(v.done, max(v.done, total))
		}
		return nil
	})
}

// report verifies the chains, and that none is missing.
func (v *logVerifier) report(ctx context.Context, heads map[string]storedHead) *LogReport {
	for writer := range heads {
		v.chain(ctx, writer)
	}
	verifiers := map[string]*chainVerifier{}
	var announced []announcement
	for writer, x := range v.chains {
		j := x.newVerifier(heads[writer].head, heads[writer].status)
		verifiers[writer] = j
		announced = append(announced, j.announcements()...)
	}
	report := &LogReport{}
	for _, writer := range slices.Sorted(maps.Keys(verifiers)) {
		others := slices.DeleteFunc(slices.Clone(announced), func(a announcement) bool { return a.writer == writer })
		report.Chains = append(report.Chains, verifiers[writer].verify(others))
	}
	v.checkNamedChains(report, verifiers, announced)
	slices.SortFunc(report.Chains, func(a, b *Report) int { return strings.Compare(a.Writer, b.Writer) })
	return report
}

// checkNamedChains reports the chains of which the heads of others name batches that are
// missing, although the chain's own head does not.
func (v *logVerifier) checkNamedChains(report *LogReport, verifiers map[string]*chainVerifier, announced []announcement) {
	for _, writer := range slices.Sorted(maps.Keys(verifiers)) {
		if verifiers[writer].head == nil {
			continue
		}
		named := verifiers[writer].head.Chains
		for _, other := range slices.Sorted(maps.Keys(named)) {
			if named[other] <= verifiers[other].lastBatch() || !validWriter.MatchString(other) || slices.ContainsFunc(announced, func(a announcement) bool {
				return a.rec.Event == EventCheckpoint && a.rec.Chain == other && a.rec.UpTo != nil && a.rec.UpTo.Batch >= named[other]
			}) {
				continue
			}
			report.addTruncated(other, named[other], writer)
		}
	}
}

// lastBatch returns the number of the last batch that the chain or its head contains; 0 of a nil
// verifier.
func (j *chainVerifier) lastBatch() uint64 {
	if j == nil {
		return 0
	}
	last := j.head.signedBatch()
	if len(j.selected) > 0 {
		last = max(last, j.selected[0].number)
	}
	return last
}

// addTruncated reports that the end of a chain, or all of it, is missing together with its head.
func (r *LogReport) addTruncated(writer string, batch uint64, witness string) {
	i := slices.IndexFunc(r.Chains, func(c *Report) bool { return c.Writer == writer })
	if i < 0 {
		i = len(r.Chains)
		r.Chains = append(r.Chains, &Report{Writer: writer, Notes: []string{}, Problems: []Problem{}})
	}
	if r.Chains[i].OK() {
		r.Chains[i].Problems = append(r.Chains[i].Problems, Problem{
			Kind: ProblemTruncated, Batch: batch, Detail: "the batch is missing, and so is a head for it; the head of chain " + witness + " names it",
		})
	}
}
