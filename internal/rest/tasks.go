package rest

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// What an agent may send of a task later, in bytes. A result that is returned at
// once has the same bound.
const (
	maxResultBytes   = 4 << 20
	maxProgressBytes = 64 << 10
)

// ResultReceipt is the answer of POST /api/v1/tasks/{id}/result.
type ResultReceipt struct {
	Status string `json:"status"`
}

func (s *Server) handleResult(x *exchange, _ echo.Context) error {
	var res contract.Result
	if err := s.decodeBody(x, &res); err != nil {
		return err
	}
	if res.TaskID != x.grant.TaskID {
		return invalid([]contract.ErrorDetail{{Pointer: "/task_id", Detail: "must be the id of the task in the path"}})
	}
	if err := s.deps.Router.Result(x.req.Context(), x.grant, &res); err != nil {
		return err
	}
	return s.writeJSON(x, http.StatusOK, typeJSON, ResultReceipt{Status: "accepted"})
}

func (s *Server) handleProgress(x *exchange, _ echo.Context) error {
	var p contract.Progress
	if err := s.decodeBody(x, &p); err != nil {
		return err
	}
	if err := s.deps.Router.Progress(x.req.Context(), x.grant, &p); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}
