// Command drover keeps agent conversations in durable sessions and drives them.
package main

import (
	"os"

	"github.com/drover-run/drover/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
