package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/router"
)

// RouteOnce handles one request in this process, without a server, for `caprouter route`
// without a router. The caller is the local principal, who has every scope.
func RouteOnce(ctx context.Context, cfg config.Config, opts Options, req *contract.Request) (*contract.Response, error) {
	path, _ := cfg.Registry.FilePath()
	snapshot, err := capabilities.Load(path)
	if err != nil {
		return nil, err
	}
	keys, err := openRouteKeys(cfg, req.Options.DryRun)
	if err != nil {
		return nil, err
	}
	c, err := newCore(ctx, cfg, opts, keys)
	if err != nil {
		return nil, err
	}
	defer c.close(ctx)
	model, err := lexical.TrainContext(ctx, classifier.BuildCorpus(snapshot.Catalogue))
	if err != nil {
		return nil, err
	}
	c.installView(router.NewTrainedView(snapshot, model, c.dispatcher))
	return c.router.Handle(ctx, req, contract.LocalCaller())
}

// openRouteKeys opens the key of the data directory, which agents may know from a
// router that serves it. Without one, or in a dry run, which signs nothing, the key is
// new and not stored: only a router creates a data directory.
func openRouteKeys(cfg config.Config, dryRun bool) (*keyring.Ring, error) {
	if _, err := os.Lstat(filepath.Join(cfg.DataDir, keyring.File)); dryRun || errors.Is(err, fs.ErrNotExist) {
		return keyring.New()
	}
	return keyring.Open(cfg.DataDir)
}
