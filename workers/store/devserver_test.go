package store

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// devserver is a running restar-devserver that a test may kill and start again
// on the same folder and ports.
type devserver struct {
	t    *testing.T
	bin  string
	dir  string
	port [3]int
	cmd  *exec.Cmd
	s3   S3Options
}

// newDevserver starts one, in a folder that holds these already, or skips the
// test where the binary is not built.
func newDevserver(t *testing.T, folders ...string) *devserver {
	t.Helper()
	bin := os.Getenv("RESTAR_DEVSERVER")
	if bin == "" {
		bin, _ = filepath.Abs("../../bin/restar-devserver")
	}
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("no restar-devserver (%v): run `make build` or set RESTAR_DEVSERVER to test against S3", err)
	}
	d := &devserver{t: t, bin: bin, dir: t.TempDir()}
	for i := range d.port {
		d.port[i] = unusedPort(t)
	}
	for _, f := range folders {
		must(t, os.Mkdir(filepath.Join(d.dir, f), 0o700))
	}
	d.start()
	t.Cleanup(d.kill)
	return d
}

func unusedPort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (d *devserver) start() {
	d.t.Helper()
	ready := filepath.Join(d.dir, "ready.json")
	os.Remove(ready)
	d.cmd = exec.Command(d.bin, "--dir", d.dir, "--grpc", fmt.Sprint(d.port[0]), "--ui", fmt.Sprint(d.port[1]), "--s3", fmt.Sprint(d.port[2]))
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := os.Create(filepath.Join(d.dir, "output"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer out.Close()
	d.cmd.Stderr = out
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if body, err := os.ReadFile(ready); err == nil {
			d.parse(body)
			return
		}
		if time.Now().After(deadline) || d.cmd.Process.Signal(syscall.Signal(0)) != nil {
			said, _ := os.ReadFile(out.Name())
			d.t.Fatalf("restar-devserver did not become ready: %s", said)
		}
	}
}

func (d *devserver) parse(body []byte) {
	var r struct {
		S3        string `json:"s3"`
		AccessKey string `json:"access_key"`
		SecretKey string `json:"secret_key"`
		Bucket    string `json:"bucket"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		d.t.Fatal(err)
	}
	d.s3 = S3Options{Endpoint: r.S3, Bucket: r.Bucket, AccessKey: r.AccessKey, SecretKey: r.SecretKey}
}

// kill is kill -9.
func (d *devserver) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *devserver) open() *S3 {
	d.t.Helper()
	s, err := NewS3(d.s3)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}
