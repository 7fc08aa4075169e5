package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// readOnly is all of the machine that exists inside. Nothing below /etc but the loader's cache and the library choices.
var readOnly = []string{"/usr/bin", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/alternatives"}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

var files = map[string]string{
	"/etc/passwd": "root:x:0:0::/:/bin/false\nsandbox:x:1000:1000::/tmp:/bin/false\n",
	"/etc/group":  "root:x:0:\nsandbox:x:1000:\n",
	"/etc/hosts":  "127.0.0.1 localhost\n",
}

var links = map[string]string{
	"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
	"/dev/stderr": "/proc/self/fd/2", "/dev/shm": "/tmp", // one quota for both
}

// buildRoot makes a root on a tmpfs and moves into it; the machine's own root is gone afterwards.
func buildRoot(s stage) error {
	const root = "/tmp" // exists everywhere, and is covered by the mount
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=0755"); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	if err := populate(root, s); err != nil {
		return err
	}
	if err := unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w (in a pod: procMount: Unmasked, which needs hostUsers: false)", err)
	}
	return enter(root)
}

func populate(root string, s stage) error {
	for _, d := range []string{"/tmp", "/proc", "/dev", "/etc", "/usr", "/sbx", "/old"} {
		if err := os.MkdirAll(root+d, 0o755); err != nil {
			return err
		}
	}
	for _, p := range readOnly {
		if err := bind(root, p, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return err
		}
	}
	for _, p := range devices {
		if err := bind(root, p, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	for path, text := range files {
		if err := os.WriteFile(root+path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for path, target := range links {
		if err := os.Symlink(target, root+path); err != nil {
			return err
		}
	}
	return errors.Join(systemLinks(root), ownFiles(root, s))
}

// systemLinks repeats /bin, /lib and so on, which are links into /usr on a merged system.
func systemLinks(root string) error {
	for _, l := range []string{"/bin", "/lib", "/lib64"} {
		target, err := os.Readlink(l)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s is no link into /usr, expected a merged /usr: %w", l, err)
		}
		if err := os.Symlink(target, root+l); err != nil {
			return err
		}
	}
	return nil
}

func ownFiles(root string, s stage) error {
	return errors.Join(
		os.WriteFile(root+"/sbx/zygote.py", zygoteSource, 0o644),
		os.WriteFile(root+"/sbx/shim.so", shimObject, 0o644),
		os.WriteFile(root+"/sbx/init", initProgram, 0o755),
		os.WriteFile(root+"/sbx/filter.bpf", s.Filter, 0o644))
}

// bind makes path of the machine appear at the same place below root, with attributes on every mount in it. What the
// machine does not have is left out.
func bind(root, path string, attrs uint64) error {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := mountPoint(root+path, st.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(path, root+path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", path, err)
	}
	if err := unix.MountSetattr(-1, root+path, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attrs}); err != nil {
		return fmt.Errorf("restrict the mount of %s: %w (needs Linux 5.12)", path, err)
	}
	return nil
}

func mountPoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// enter makes root the root of the mount namespace, read-only, and drops everything else.
func enter(root string) error {
	if err := unix.PivotRoot(root, root+"/old"); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the machine's root: %w", err)
	}
	if err := os.Remove("/old"); err != nil {
		return err
	}
	attrs := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(-1, "/", 0, &attrs); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}
