package app

import (
	"cmp"
	"context"
	"errors"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/fleet"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/orchestrations"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/registry"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/router"
)

// serverCore is a core that serves: it has a store, follows the registry, and connects to MCP
// servers.
type serverCore struct {
	*core

	persistence *persistence
	access      *accessControl
	file        *registry.File
	fleet       *fleet.Fleet
	registry    *registry.Registry
	views       *viewBuilder
	mcp         *mcphost.Host
	agentCheck  *agentCheck
	runs        *orchestrations.Service
}

// newServerCore builds a serverCore. The keys sign the tokens of agents. Only one process can
// open the store at a time. used means that an earlier process has used the data directory, so
// that it must contain an audit log.
func newServerCore(ctx context.Context, cfg config.Config, opts Options, keys *keyring.Ring, used bool) (_ *serverCore, err error) {
	base, redactor, err := openCore(cfg, &opts, keys, true)
	if err != nil {
		return nil, err
	}
	c := &serverCore{core: base}
	defer func() {
		if err != nil {
			_ = c.closeResources(ctx) // the first error is returned
		}
	}()
	if err := c.openParts(&opts, redactor, taskInvoker{c}, goalRunner{c}); err != nil {
		return nil, err
	}
	if err := c.openFiles(ctx, &opts, redactor, used); err != nil {
		return nil, err
	}
	if c.router, err = router.New(c.storingRouterConfig(redactor), c.classifier, c.dispatcher); err != nil {
		return nil, err
	}
	if c.mcp, err = c.openMCP(ctx, &opts, redactor); err != nil {
		return nil, err
	}
	c.agentCheck = newAgentCheck(c)
	if c.runs, err = c.openRuns(ctx, &opts, redactor); err != nil {
		return nil, err
	}
	c.telemetry.Metrics().ObserveOpen(c.router.OpenRequests)
	return c, nil
}

// openFiles opens what is in files: keys and certificate, store and registry.
func (c *serverCore) openFiles(ctx context.Context, opts *Options, redactor *redact.Redactor, used bool) (err error) {
	if c.access, err = c.openAccess(opts); err != nil {
		return err
	}
	var errs [2]error // at the same time: the store waits for the disk
	run.ForEach(ctx, len(errs), len(errs), func(ctx context.Context, i int) {
		if i == 0 {
			errs[i] = c.openPersistence(ctx, opts, used, redactor)
		} else {
			c.file, errs[i] = openRegistryFile(&c.cfg.Registry, c.log)
		}
	})
	return cmp.Or(errs[0], errs[1])
}

// storingRouterConfig returns the configuration of the router with its storage.
func (c *serverCore) storingRouterConfig(redactor *redact.Redactor) router.Config {
	cfg := c.routerConfig(redactor)
	cfg.Storage = c.persistence.routerStorage(c.cfg.Audit)
	cfg.Storage.Runs = requestRuns{c} // which are opened after the router
	if c.access.verifier != nil && c.cfg.Auth.StopOnRevoke {
		cfg.IsRevoked = c.access.verifier.IsKeyRevoked
	}
	return cfg
}

// snapshot returns the version of the registry that routes, or the one that a View
// is being built of.
func (c *serverCore) snapshot() *capabilities.Snapshot {
	if v := c.router.View(); v != nil {
		return v.Snapshot()
	}
	return c.registry.Current()
}

// installView makes v the View of the router, and removes the bindings of agents that it does
// not contain any more.
func (c *serverCore) installView(v *router.View) {
	c.core.installView(v)
	c.mcp.RefreshBindings()
	c.agentCheck.viewInstalled()
}

// closeResources releases all resources, some of which may not be open, and ends calls to
// agents and to the model.
func (c *serverCore) closeResources(ctx context.Context) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if c.router != nil {
		c.router.Close(closing)
	}
	if c.runs != nil {
		c.runs.Close(closing)
	}
	var err error
	if c.mcp != nil { // after the router, whose tasks may call tools
		err = c.mcp.Close()
	}
	c.closeClients()
	if c.persistence != nil {
		err = errors.Join(err, c.persistence.closeStore(closing))
	}
	c.closeTelemetry(ctx)
	return err
}
