package main

import (
	"context"
	"database/sql"
)

func setStamp(text string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "UPDATE restar_layout SET stamp = ?", text)
		return err
	}
}
