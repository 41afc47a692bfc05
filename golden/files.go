package golden

// ListFiles returns the files that Load reads for the paths, which nothing that a run
// writes may replace. One that the paths name twice is there twice.
func ListFiles(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		files, err := caseFiles(path)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}
