package local

import (
	"os"
	"os/exec"
	"path/filepath"
)

const (
	devserverName = "restar-devserver"
	// EnvDevserver names the server's binary when it is not beside restar.
	EnvDevserver = "RESTAR_DEVSERVER"
)

// FindDevserver looks for restar-devserver beside the running executable, in
// $RESTAR_DEVSERVER, then on PATH.
func FindDevserver() (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), devserverName); isProgram(beside) {
			return beside, nil
		}
	}
	if named := os.Getenv(EnvDevserver); named != "" {
		if !isProgram(named) {
			return "", userf("$%s is %s, which is no program; correct it", EnvDevserver, named)
		}
		return filepath.Abs(named)
	}
	if found, err := exec.LookPath(devserverName); err == nil {
		return filepath.Abs(found)
	}
	return "", userf("%s is not beside restar, in $%s or on PATH; build it with `make build`, or give the address of a Temporal server and an S3 endpoint", devserverName, EnvDevserver)
}

func isProgram(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}
