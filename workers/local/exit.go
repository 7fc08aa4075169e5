package local

import "os"

const (
	// EnvSupervised is set to 1 in the environment of every child. Such a child
	// says by ExitConfig that its failure is the user's to mend.
	EnvSupervised = "RESTAR_SUPERVISED"
	// ExitConfig is EX_CONFIG of BSD's sysexits.h. Starting the child again
	// changes nothing then; after any other end it is started again. Exit code 2,
	// by which a command line tells the same, is no such word: the Go runtime
	// ends with it after a panic, without memory and at SIGQUIT.
	ExitConfig = 78
)

// ExitCode is the exit code to end this process with: code, or ExitConfig for
// the code of user errors in a supervised process.
func ExitCode(code, user int) int {
	if code == user && os.Getenv(EnvSupervised) == "1" {
		return ExitConfig
	}
	return code
}
