package main

import (
	"fmt"
	"net"
	"strconv"
)

// ports are the listeners of one process. The first three are the caller's
// choice and public; the rest are Temporal's internal services.
type ports struct {
	grpc, ui, s3                              int
	frontendHTTP, history, matching, internal int
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// choosePorts checks the fixed ports and finds free ones for the rest.
func choosePorts(o options) (ports, error) {
	p := ports{grpc: o.grpc, ui: o.ui, s3: o.s3}
	fixed := []struct {
		port       int
		flag, what string
	}{{p.grpc, "--grpc", "the Temporal frontend"}, {p.ui, "--ui", "the Temporal Web UI"}, {p.s3, "--s3", "the S3 server"}}
	for _, f := range fixed {
		if err := probePort(f.port, f.flag, f.what); err != nil {
			return p, err
		}
	}
	for _, free := range []*int{&p.grpc, &p.ui, &p.s3, &p.frontendHTTP, &p.history, &p.matching, &p.internal} {
		if *free != 0 {
			continue
		}
		var err error
		if *free, err = freePort(); err != nil {
			return p, fmt.Errorf("find a free port on %s: %w", host, err)
		}
	}
	return p, nil
}

func probePort(port int, flag, what string) error {
	if port == 0 {
		return nil
	}
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return usagef("port %d (%s) on %s cannot be used: %v; stop the program that holds it (`ss -ltnp sport = :%d` names it) or choose another with %s", port, what, host, err, port, flag)
	}
	return l.Close()
}

// freePort returns a port that the kernel will not hand out again for a while:
// one accepted and closed connection leaves it in TIME_WAIT, which listeners
// with SO_REUSEADDR may take and port-0 binds may not.
func freePort() (int, error) {
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer dialed.Close()
	accepted, err := l.Accept()
	if err != nil {
		return 0, err
	}
	// The side that closes first keeps the TIME_WAIT: it must be the listener's.
	return l.Addr().(*net.TCPAddr).Port, accepted.Close()
}
