package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestKill9OfTheObjectServerLosesNothingAcknowledgedAndFailsNoCall(t *testing.T) {
	d := newDevserver(t)
	s := d.open()
	const writers, each = 8, 40
	body := func(w, i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d-%d;", w, i), 2000) }
	var done atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := s.Put(t.Context(), fmt.Sprintf("w%d/%06d", w, i), body(w, i), PutOptions{IfNoneMatch: true}); err != nil {
					t.Errorf("put %d of writer %d: %v", i, w, err)
					return
				}
				done.Add(1)
			}
		})
	}
	for kills := 1; kills <= 3; kills++ { // between puts, at a quarter, a half, three quarters
		for done.Load() < int64(kills*writers*each/4) && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		d.kill()
		d.start()
	}
	wg.Wait()
	entries, err := s.List(t.Context(), "w")
	must(t, err)
	if len(entries) != writers*each {
		t.Fatalf("%d objects, want %d", len(entries), writers*each)
	}
	for w := range writers {
		for i := range each {
			got, _, err := s.Get(t.Context(), fmt.Sprintf("w%d/%06d", w, i))
			must(t, err)
			if !bytes.Equal(got, body(w, i)) {
				t.Fatalf("object %d of writer %d is torn", i, w)
			}
		}
	}
}

// lossy forwards to an S3 server but loses the answers to the first PUTs: the
// writer cannot know whether its object is there.
type lossy struct {
	forward http.Handler
	lose    atomic.Int64
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || l.lose.Add(-1) < 0 {
		l.forward.ServeHTTP(w, r)
		return
	}
	l.forward.ServeHTTP(&discarding{header: http.Header{}}, r)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

type discarding struct{ header http.Header }

func (d *discarding) Header() http.Header         { return d.header }
func (d *discarding) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarding) WriteHeader(int)             {}

func behindLossy(t *testing.T, d *devserver, lose int64) *S3 {
	t.Helper()
	target, err := url.Parse(d.s3.Endpoint)
	must(t, err)
	l := &lossy{forward: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // the signature covers it
	}}}
	l.lose.Store(lose)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	srv := &http.Server{Handler: l}
	go srv.Serve(listener)
	t.Cleanup(func() { srv.Close() })
	o := d.s3
	o.Endpoint = "http://" + listener.Addr().String()
	s, err := NewS3(o)
	must(t, err)
	return s
}

func TestAWriterWhoseAnswerWasLostRecognizesItsOwnObject(t *testing.T) {
	d := newDevserver(t)
	s := behindLossy(t, d, 2)
	etag, err := s.Put(t.Context(), "own/first", []byte("mine"), PutOptions{IfNoneMatch: true})
	must(t, err)
	_, stands, err := s.Get(t.Context(), "own/first")
	must(t, err)
	if etag != stands {
		t.Fatalf("put returned version %q, the object has %q", etag, stands)
	}
	// The same bytes from somebody else are not one's own.
	other := behindLossy(t, d, 1)
	_, err = d.open().Put(t.Context(), "own/second", []byte("same"), PutOptions{IfNoneMatch: true})
	must(t, err)
	_, err = other.Put(t.Context(), "own/second", []byte("same"), PutOptions{IfNoneMatch: true})
	wantErr(t, err, ErrExists)
	swap := behindLossy(t, d, 1)
	next, err := swap.Put(t.Context(), "own/first", []byte("newer"), PutOptions{IfMatch: etag})
	must(t, err)
	if _, stands, _ = s.Get(t.Context(), "own/first"); next != stands {
		t.Fatalf("swap returned version %q, the object has %q", next, stands)
	}
}

func TestAnObjectLargerThanAPartIsWrittenOnceAndWhole(t *testing.T) {
	s := newDevserver(t).open()
	body := bytes.Repeat([]byte("0123456789abcdef"), (multipartFrom+1<<20)/16)
	_, err := s.Put(t.Context(), "big/one", body, PutOptions{IfNoneMatch: true})
	must(t, err)
	_, err = s.Put(t.Context(), "big/one", body, PutOptions{IfNoneMatch: true})
	wantErr(t, err, ErrExists)
	got, _, err := s.Get(t.Context(), "big/one")
	must(t, err)
	if sha256.Sum256(got) != sha256.Sum256(body) {
		t.Fatalf("read %d bytes that differ from the %d written", len(got), len(body))
	}
}

func TestAnUnreachableStoreIsNamedWhenACallGivesUp(t *testing.T) {
	where := fmt.Sprintf("http://127.0.0.1:%d", unusedPort(t))
	s, err := NewS3(S3Options{Endpoint: where, Bucket: "b", AccessKey: "a", SecretKey: "s", Outage: 200 * time.Millisecond})
	must(t, err)
	_, _, err = s.Get(t.Context(), "some/key")
	if err == nil || !strings.Contains(err.Error(), where) || !strings.Contains(err.Error(), "some/key") || !strings.Contains(err.Error(), "attempts") {
		t.Fatalf("error is %v, want one that names the store, the key and the attempts", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Put(ctx, "k", nil, PutOptions{})
	wantErr(t, err, context.DeadlineExceeded)
}

func TestWrongCredentialsAndBucketsAreRefusedAtOnceWithTheFix(t *testing.T) {
	d := newDevserver(t)
	for fix, change := range map[string]func(*S3Options){
		"secret key": func(o *S3Options) { o.SecretKey = "wrong" },
		"access key": func(o *S3Options) { o.AccessKey = "wrong" },
		"create it":  func(o *S3Options) { o.Bucket = "nobody" },
	} {
		o := d.s3
		change(&o)
		s, err := NewS3(o)
		must(t, err)
		for call, err := range map[string]error{"check": s.Check(t.Context()), "get": func() error { _, _, err := s.Get(t.Context(), "k"); return err }(), "put": func() error { _, err := s.Put(t.Context(), "k", nil, PutOptions{}); return err }()} {
			if err == nil || !strings.Contains(err.Error(), fix) || errors.Is(err, ErrNotFound) {
				t.Errorf("%s: error is %v, want one that says %q", call, err, fix)
			}
		}
	}
	must(t, d.open().Check(t.Context()))
}

func TestBadS3OptionsAreRefused(t *testing.T) {
	for _, o := range []S3Options{{}, {Endpoint: "127.0.0.1:9000", Bucket: "b", AccessKey: "a", SecretKey: "s"}, {Endpoint: "http://x", AccessKey: "a", SecretKey: "s"}} {
		if _, err := NewS3(o); err == nil {
			t.Errorf("options %+v were accepted", o)
		}
	}
}
