package testkit

import "flag"

// RaiseParallel lets more tests run at the same time than there are processors, unless the flag
// -parallel is set. It is for the TestMain of a package whose parallel tests wait most of the
// time: for leases, time limits and files.
func RaiseParallel() {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("8"); err != nil {
			panic(err)
		}
	}
}
