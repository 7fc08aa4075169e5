package local

import (
	"io"
	"os"
	"strings"
)

const (
	// shownLines of a log go into an error.
	shownLines = 20
	// tailBytes is how much of a log's end is read for them.
	tailBytes = 64 << 10
)

// tail returns the last lines of a file, none from before byte from.
func tail(path string, from int64, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	from = max(from, st.Size()-tailBytes)
	body, err := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	all := strings.Split(strings.TrimRight(string(body), "\n"), "\n")
	if text := strings.Join(all[max(0, len(all)-lines):], "\n"); text != "" {
		return text
	}
	return "(empty)"
}
