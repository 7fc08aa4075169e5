package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"
)

const (
	// multipartFrom is the size above which an object travels in parts.
	multipartFrom = 64 << 20
	partSize      = 32 << 20
	partsAtOnce   = 4
	// idleConnections kept to one endpoint: thousands of journal writers share
	// it, and a closed connection costs each a handshake.
	idleConnections = 256
	// writerMeta is the metadata entry that tells a writer its own object from
	// another's after an answer was lost.
	writerMeta = "restar-writer"
)

// S3Options say where a bucket is and how to sign in. Credentials are given,
// never searched for.
type S3Options struct {
	Endpoint  string // URL, e.g. http://127.0.0.1:9000; addressed path style
	Region    string // default us-east-1
	Bucket    string
	AccessKey string
	SecretKey string
	// Outage is how long a call keeps trying while the store does not answer;
	// default 90 s, many times the restart of a local server.
	Outage time.Duration
}

// S3 is a Store over one bucket of any S3-compatible service that knows
// conditional writes.
type S3 struct {
	client *s3.Client
	upload *transfermanager.Client
	bucket *string
	where  string // endpoint and bucket, for messages
	outage time.Duration
}

var _ Store = (*S3)(nil)

// defaultOutage is S3Options.Outage when unset.
const defaultOutage = 90 * time.Second

// NewS3 checks the options; it does not connect. See Check.
func NewS3(o S3Options) (*S3, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("S3 endpoint %q, want a URL such as http://127.0.0.1:9000", o.Endpoint)
	}
	if o.Bucket == "" || o.AccessKey == "" || o.SecretKey == "" {
		return nil, fmt.Errorf("S3 at %s: bucket %q, access key %q and the secret key must all be given", o.Endpoint, o.Bucket, o.AccessKey)
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Outage == 0 {
		o.Outage = defaultOutage
	}
	client := s3.New(s3.Options{
		Region: o.Region, BaseEndpoint: aws.String(o.Endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, ""),
		// Retries are ours: only this package knows when a repeated conditional
		// write met its own first attempt.
		RetryMaxAttempts: 1,
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
		}),
	})
	return &S3{
		client: client, bucket: aws.String(o.Bucket), where: o.Endpoint + "/" + o.Bucket, outage: o.Outage,
		upload: transfermanager.New(client, func(t *transfermanager.Options) {
			t.PartSizeBytes, t.MultipartUploadThreshold, t.Concurrency = partSize, multipartFrom, partsAtOnce
		}),
	}, nil
}

// Check tells whether the bucket can be used, within one call's deadline.
func (s *S3) Check(ctx context.Context) error {
	return s.call(ctx, "use bucket", *s.bucket, 0, func(ctx context.Context, _ bool) error {
		_, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: s.bucket, MaxKeys: aws.Int32(1)})
		return err
	})
}

// Get implements Store. The content is checked against the checksum it was
// stored with.
func (s *S3) Get(ctx context.Context, key string) (body []byte, etag ETag, err error) {
	err = s.call(ctx, "get", key, multipartFrom, func(ctx context.Context, _ bool) error {
		out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: s.bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled})
		if err != nil {
			return err
		}
		defer out.Body.Close()
		etag = ETag(aws.ToString(out.ETag))
		body, err = readAll(out.Body, aws.ToInt64(out.ContentLength))
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return body, etag, nil
}

// readAll reads size bytes and the end, where the checksum is compared.
func readAll(r io.Reader, size int64) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := buf.ReadFrom(r); err != nil {
		return nil, err
	}
	if int64(buf.Len()) != size {
		return nil, fmt.Errorf("%w: have %d bytes, want %d", io.ErrUnexpectedEOF, buf.Len(), size)
	}
	return buf.Bytes(), nil
}

// Put implements Store.
func (s *S3) Put(ctx context.Context, key string, body []byte, opt PutOptions) (etag ETag, err error) {
	if err := opt.check(key); err != nil {
		return "", err
	}
	writer := uuid.NewString()
	err = s.call(ctx, "put", key, int64(len(body)), func(ctx context.Context, repeated bool) error {
		var err error
		etag, err = s.putOnce(ctx, key, body, opt, writer)
		if failed := preconditionError(err, opt); failed != nil && repeated {
			// The first attempt may have arrived although its answer did not.
			return s.recognize(ctx, key, writer, &etag, failed)
		} else if failed != nil {
			return failed
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return etag, nil
}

func (s *S3) putOnce(ctx context.Context, key string, body []byte, opt PutOptions, writer string) (ETag, error) {
	var none, match *string
	if opt.IfNoneMatch {
		none = aws.String("*")
	} else if opt.IfMatch != "" {
		match = aws.String(string(opt.IfMatch))
	}
	meta := map[string]string{writerMeta: writer}
	if len(body) >= multipartFrom {
		if err := s.lostAlready(ctx, key, opt); err != nil {
			return "", err
		}
		out, err := s.upload.UploadObject(ctx, &transfermanager.UploadObjectInput{
			Bucket: s.bucket, Key: &key, Body: bytes.NewReader(body), IfNoneMatch: none, IfMatch: match,
			Metadata: meta, ChecksumAlgorithm: tmtypes.ChecksumAlgorithmCrc32,
		})
		if err != nil {
			return "", err
		}
		return ETag(aws.ToString(out.ETag)), nil
	}
	out, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: s.bucket, Key: &key, Body: bytes.NewReader(body), IfNoneMatch: none, IfMatch: match,
		Metadata: meta, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		return "", err
	}
	return ETag(aws.ToString(out.ETag)), nil
}

// lostAlready asks whether a large conditional write is lost already, before
// its parts travel. The store decides again at the end.
func (s *S3) lostAlready(ctx context.Context, key string, opt PutOptions) error {
	if !opt.IfNoneMatch {
		return nil
	}
	_, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: s.bucket, Key: &key})
	if statusCode(err) == http.StatusNotFound {
		return nil
	}
	if err == nil {
		err = ErrExists
	}
	return err
}

// recognize returns nil when the object under key was written by writer, and
// the precondition's failure otherwise.
func (s *S3) recognize(ctx context.Context, key, writer string, etag *ETag, failed error) error {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: s.bucket, Key: &key})
	if statusCode(err) == http.StatusNotFound {
		return failed
	}
	if err != nil {
		return err
	}
	if out.Metadata[writerMeta] != writer {
		return failed
	}
	*etag = ETag(aws.ToString(out.ETag))
	return nil
}

// List implements Store.
func (s *S3) List(ctx context.Context, prefix string) (entries []Entry, err error) {
	err = s.call(ctx, "list", prefix, 0, func(ctx context.Context, _ bool) error {
		entries = nil
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: s.bucket, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, o := range page.Contents {
				entries = append(entries, Entry{Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size), ETag: ETag(aws.ToString(o.ETag))})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, key string) error {
	err := s.call(ctx, "delete", key, 0, func(ctx context.Context, _ bool) error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: s.bucket, Key: &key})
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
