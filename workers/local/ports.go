package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	loopback = "127.0.0.1"
	// Ports are taken below the range that the kernel gives to outgoing
	// connections (32768 up), or a stored port could be taken by any of them.
	firstPort = 20000
	lastPort  = 29999
	// portsTimeout is how long the ports of a dead server may stay busy.
	portsTimeout = 3 * time.Second
)

// ports are the public ports of a folder's server.
type ports struct {
	GRPC int `json:"grpc"`
	UI   int `json:"ui"`
	S3   int `json:"s3"`
}

func (p ports) flags() []string {
	return []string{"--grpc", strconv.Itoa(p.GRPC), "--ui", strconv.Itoa(p.UI), "--s3", strconv.Itoa(p.S3)}
}

// loadPorts returns the folder's ports, choosing them once. A stored port that
// a stranger holds is an error: moving would break bookmarks silently.
func loadPorts(ctx context.Context, dir string) (ports, error) {
	path := filepath.Join(dir, "ports.json")
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return choosePorts(dir, path)
	}
	if err != nil {
		return ports{}, userf("ports of the folder, %s, cannot be read (%v); fix its permissions", path, err)
	}
	var p ports
	if err := json.Unmarshal(body, &p); err != nil || p.GRPC <= 0 || p.UI <= 0 || p.S3 <= 0 {
		return p, userf("ports of the folder, %s, are damaged (want grpc, ui and s3); delete the file to choose new ones", path)
	}
	return p, p.await(ctx, path)
}

// await sees every stored port free.
func (p ports) await(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, portsTimeout)
	defer cancel()
	for _, one := range []struct {
		port int
		what string
	}{{p.UI, "the Temporal Web UI"}, {p.GRPC, "the Temporal server"}, {p.S3, "the S3 server"}} {
		for !free(one.port) {
			if !wait(ctx, lockEvery) {
				return userf("port %d on %s, this folder's port for %s, is taken by another program; stop it (`ss -ltnp sport = :%d` names it) or delete %s to choose new ports", one.port, loopback, one.what, one.port, path)
			}
		}
	}
	return nil
}

// choosePorts takes the first free ports from a place that the folder's name
// decides, so that two folders seldom meet, and stores them.
func choosePorts(dir, path string) (ports, error) {
	h := fnv.New32a()
	h.Write([]byte(dir))
	start := int(h.Sum32() % (lastPort - firstPort + 1))
	var found []int
	for i := 0; i <= lastPort-firstPort && len(found) < 3; i++ {
		if port := firstPort + (start+i)%(lastPort-firstPort+1); free(port) {
			found = append(found, port)
		}
	}
	if len(found) < 3 {
		return ports{}, userf("no three free ports from %d to %d on %s; stop some programs", firstPort, lastPort, loopback)
	}
	p := ports{UI: found[0], GRPC: found[1], S3: found[2]}
	body, err := json.Marshal(p)
	if err != nil {
		return p, err
	}
	return p, writeAtomic(path, append(body, '\n'))
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// writeAtomic makes path hold body or be as it was, whoever dies meanwhile.
func writeAtomic(path string, body []byte) error {
	tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	if err := os.WriteFile(tmp, body, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
