package collective

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"syscall"
	"time"
)

// errStranger is somebody else at a peer's address.
var errStranger = errors.New("collective: the other side is not of this group")

const (
	protocol   = "restar-collective-1"
	maxMessage = 1 << 30 // bytes of one exchanged message: a training state of the largest model that one message should carry
	chunk      = 1 << 14 // floats that are converted at once: 64 KiB
)

// peer is the connection to another rank. A frame is uint32 serial, uint64 length in bytes, content, little-endian.
type peer struct {
	rank int
	conn net.Conn
}

// watch ends the connection when ctx ends.
func (p *peer) watch(ctx context.Context) (stop func()) {
	end := context.AfterFunc(ctx, func() { _ = p.conn.Close() })
	return func() { end() }
}

// greet says who is calling and hears whether the other side is the one expected.
func (p *peer) greet(ctx context.Context, o Options, rank int) error {
	defer p.watch(ctx)()
	if err := p.send(p.writer(o.Patience), 0, hello(o, rank)); err != nil {
		return err
	}
	answer, err := p.receive(p.reader(o.Patience), 0)
	if err != nil {
		return err
	}
	if want := hello(o, p.rank); string(answer) != string(want) {
		return fmt.Errorf("%w: it answers %q, want %q", errStranger, answer, want)
	}
	return nil
}

// welcome hears who is calling and answers.
func (p *peer) welcome(ctx context.Context, o Options) (rank int, err error) {
	defer p.watch(ctx)()
	said, err := p.receive(p.reader(o.Patience), 0)
	if err != nil {
		return 0, err
	}
	for rank = range len(o.Addresses) {
		if string(said) == string(hello(o, rank)) {
			return rank, p.send(p.writer(o.Patience), 0, hello(o, o.Rank))
		}
	}
	return 0, fmt.Errorf("%w: it says %q, want one like %q", errStranger, said, hello(o, o.Rank+1))
}

func hello(o Options, rank int) []byte {
	return fmt.Appendf(nil, "%s %q rank %d of %d", protocol, o.Name, rank, len(o.Addresses))
}

// swap sends floats and receives floats at once, so that neither side waits for the other to read.
func (p *peer) swap(serial uint32, patience time.Duration, out, in Shard) error {
	sent := make(chan error, 1)
	go func() { sent <- p.sendFloats(p.writer(patience), serial, out) }()
	err := p.receiveFloats(p.reader(patience), serial, in)
	return p.both(err, sent)
}

func (p *peer) swapMessages(serial uint32, patience time.Duration, message []byte) ([]byte, error) {
	sent := make(chan error, 1)
	go func() { sent <- p.send(p.writer(patience), serial, message) }()
	got, err := p.receive(p.reader(patience), serial)
	return got, p.both(err, sent)
}

// both waits for the sending after a receipt. A failed receipt ends the sending too, and is what failed.
func (p *peer) both(received error, sent <-chan error) error {
	if received != nil {
		_ = p.conn.Close()
	}
	if failed := <-sent; received == nil {
		return failed
	}
	return received
}

func (p *peer) send(w io.Writer, serial uint32, message []byte) error {
	if _, err := w.Write(header(serial, len(message))); err != nil {
		return err
	}
	_, err := w.Write(message)
	return err
}

func (p *peer) receive(r io.Reader, serial uint32) ([]byte, error) {
	n, err := p.expect(r, serial)
	if err != nil {
		return nil, err
	}
	if n > maxMessage {
		return nil, fmt.Errorf("message of %d bytes, want at most %d", n, maxMessage)
	}
	message := make([]byte, n)
	_, err = io.ReadFull(r, message)
	return message, err
}

func (p *peer) sendFloats(to io.Writer, serial uint32, s Shard) error {
	w := bufio.NewWriterSize(to, 4*chunk)
	if _, err := w.Write(header(serial, 4*s.Len())); err != nil {
		return err
	}
	buf := make([]byte, 0, 4*chunk)
	for _, v := range s {
		for len(v) > 0 {
			n := min(chunk, len(v))
			buf = buf[:0]
			for _, x := range v[:n] {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
			}
			if _, err := w.Write(buf); err != nil {
				return err
			}
			v = v[n:]
		}
	}
	return w.Flush()
}

func (p *peer) receiveFloats(r io.Reader, serial uint32, s Shard) error {
	n, err := p.expect(r, serial)
	if err != nil {
		return err
	}
	if n != uint64(4*s.Len()) {
		return fmt.Errorf("it sends %d bytes, want %d floats", n, s.Len())
	}
	buf := make([]byte, 4*chunk)
	for _, v := range s {
		for len(v) > 0 {
			n := min(chunk, len(v))
			if _, err := io.ReadFull(r, buf[:4*n]); err != nil {
				return err
			}
			for i := range n {
				v[i] = math.Float32frombits(binary.LittleEndian.Uint32(buf[4*i:]))
			}
			v = v[n:]
		}
	}
	return nil
}

const headerBytes = 12

func header(serial uint32, n int) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(make([]byte, 0, headerBytes), serial), uint64(n))
}

func (p *peer) expect(r io.Reader, serial uint32) (n uint64, err error) {
	var h [headerBytes]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			err = errors.Join(ErrEnded, err)
		}
		return 0, fmt.Errorf("waiting for operation %d: %w", serial, err)
	}
	if got := binary.LittleEndian.Uint32(h[:]); got != serial {
		return 0, fmt.Errorf("it is at operation %d, want %d: the ranks do not run the same step", got, serial)
	}
	return binary.LittleEndian.Uint64(h[4:]), nil
}

// patient renews the deadline with every piece: a peer that sends slowly is not a silent one. Without patience there is no deadline.
type patient struct {
	conn     net.Conn
	patience time.Duration
}

func (p *peer) reader(d time.Duration) io.Reader { return patient{p.conn, d} }

func (p *peer) writer(d time.Duration) io.Writer { return patient{p.conn, d} }

func (c patient) Read(b []byte) (int, error) {
	if err := c.conn.SetReadDeadline(c.deadline()); err != nil {
		return 0, err
	}
	return c.conn.Read(b)
}

func (c patient) Write(b []byte) (int, error) {
	if err := c.conn.SetWriteDeadline(c.deadline()); err != nil {
		return 0, err
	}
	return c.conn.Write(b)
}

func (c patient) deadline() time.Time {
	if c.patience == 0 {
		return time.Time{}
	}
	return time.Now().Add(c.patience)
}
