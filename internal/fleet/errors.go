package fleet

import (
	"context"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// notRegistered returns the error for an instance that is not registered, or for an agent
// without an instance if the name is "". The caller does not hold mu.
func (f *Fleet) notRegistered(key instanceKey) error {
	const most = 10 // names in the text
	f.mu.Lock()
	declared, names := f.isDeclared(key.agentID), f.roster.instanceNames(key.agentID)
	f.mu.Unlock()
	if declared {
		return &contract.Error{
			Code:    contract.CodeNotFound,
			Message: fmt.Sprintf("agent %s is declared in the operator's registry file and has no instances; an operator can disable it", key.agentID),
		}
	}
	text := fmt.Sprintf("agent %s is not registered", key.agentID)
	if key.name != "" {
		text = fmt.Sprintf("instance %s of %s", key.name, text)
	}
	if len(names) > 0 {
		text += "; its instances: " + strings.Join(names[:min(len(names), most)], ", ")
		if len(names) > most {
			text += ", …"
		}
	}
	return &contract.Error{Code: contract.CodeNotFound, Message: text}
}

// storeError returns the error for a change that could not be stored.
func (f *Fleet) storeError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return store.CallerError(ctx, f.cfg.Logger, "the registration cannot be stored", err)
}
