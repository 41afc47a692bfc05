// Package rest contains the handlers of the REST interface (/api/v1), its OpenAPI
// document, and the table that maps error codes to HTTP statuses. A handler
// decodes and validates the request, calls one method of a dependency, and
// encodes the result. The HTTP machinery, such as authentication, admission
// control and event streams, is in internal/httpserver.
//
//	api, err := rest.New(rest.Config{}, rest.Deps{Router: r, …})
//	…
//	err = server.Mount(api)
//
// openapi.yaml and one example per state in examples/ are changed before the
// handlers; the tests check that both agree.
package rest
