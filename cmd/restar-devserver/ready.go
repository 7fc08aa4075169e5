package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

const (
	// readyTimeout bounds a whole start: measured 1 to 3 s, 20 times that for
	// a busy machine with a slow disk.
	readyTimeout = 60 * time.Second
	// askTimeout bounds one question to one service.
	askTimeout = 2 * time.Second
	// askEvery is the pause between two questions.
	askEvery = 20 * time.Millisecond
)

// readiness is the ready file: where everything answers, and how to sign in.
type readiness struct {
	Pid       int    `json:"pid"`
	Temporal  string `json:"temporal"` // host:port of the frontend
	UI        string `json:"ui"`       // URL
	S3        string `json:"s3"`       // URL
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
	Bucket    string `json:"bucket"`
	Namespace string `json:"namespace"`
}

func newReadiness(p ports, k keyPair) readiness {
	return readiness{
		Pid: os.Getpid(), Temporal: address(p.grpc), UI: "http://" + address(p.ui), S3: "http://" + address(p.s3),
		AccessKey: k.AccessKey, SecretKey: k.SecretKey, Bucket: bucket, Namespace: namespace,
	}
}

func (r readiness) write(path string) error {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeAtomic(path, append(body, '\n'), 0o600)
}

// await returns when every service does its work, not merely listens.
func (r readiness) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, s := range []struct {
		name string
		ask  func(context.Context) error
	}{{"S3 server at " + r.S3, r.askS3}, {"Temporal frontend at " + r.Temporal, r.askTemporal}, {"Temporal Web UI at " + r.UI, r.askUI}} {
		if err := retry(ctx, s.ask); err != nil {
			return fmt.Errorf("waiting for the %s: %w", s.name, err)
		}
	}
	return nil
}

// retry asks until there is an answer or ctx ends; it returns the last refusal.
func retry(ctx context.Context, ask func(context.Context) error) error {
	for {
		one, cancel := context.WithTimeout(ctx, askTimeout)
		err := ask(one)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(askEvery):
		}
	}
}

func (r readiness) askS3(ctx context.Context) error {
	c := s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(r.S3), UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(r.AccessKey, r.SecretKey, ""),
	})
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(r.Bucket)})
	var owned *types.BucketAlreadyOwnedByYou
	var exists *types.BucketAlreadyExists
	if errors.As(err, &owned) || errors.As(err, &exists) {
		return nil
	}
	return err
}

func (r readiness) askTemporal(ctx context.Context) error {
	c, err := client.DialContext(ctx, client.Options{HostPort: r.Temporal, Namespace: r.Namespace, Logger: sdklog.NewStructuredLogger(discard())})
	if err != nil {
		return err
	}
	defer c.Close()
	// A database made by an earlier release may lack a newer attribute; adding
	// one that exists is no error.
	if _, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: r.Namespace, SearchAttributes: searchAttributes(),
	}); err != nil {
		return err
	}
	_, err = c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: r.Namespace, Query: "Step > 0"})
	return err
}

func (r readiness) askUI(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.UI+healthPath, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s answered %s, want 200", req.URL, resp.Status)
	}
	return nil
}
