package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/restar-rl/restar/cmd/restar/internal/session"
)

// ports tells whether the embedded stack of a folder can have its ports: those that the folder keeps, or new ones.
func ports(dir string) check {
	c := check{name: "ports"}
	path := filepath.Join(dir, "ports.json")
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		c.found = "chosen at the first start"
		return c
	}
	if errors.Is(err, fs.ErrPermission) {
		c.found, c.fix = "cannot be seen", fmt.Sprintf("%v: mend the permissions or choose another folder with --dir", err)
		return c
	}
	var kept struct{ GRPC, UI, S3 int }
	if err == nil {
		err = json.Unmarshal(body, &kept)
	}
	if err != nil {
		c.found, c.fix = "unreadable", fmt.Sprintf("delete %s to choose new ports (%v)", path, err)
		return c
	}
	c.found = fmt.Sprintf("Web UI %d, Temporal %d, S3 %d on 127.0.0.1", kept.UI, kept.GRPC, kept.S3)
	if session.Running(dir) {
		c.found += ", in use by this folder's own stack"
		return c
	}
	for _, p := range []int{kept.UI, kept.GRPC, kept.S3} {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			c.fix = fmt.Sprintf("port %d is taken by another program: stop it (`ss -ltnp sport = :%d` names it) or delete %s to choose new ports", p, p, path)
			return c
		}
		l.Close()
	}
	return c
}
