// Package responsejson encodes responses and decisions as [strictjson.Marshal] does, byte
// for byte, without reflection. Both are encoded for each request: the decision for its
// record, and the response for its caller and its record.
//
//	body, err := responsejson.Append(nil, response)
//
// Members that are rare are encoded by reflection. A new member of an encoded type must be
// added here; the tests fill every member of these types and compare.
package responsejson
