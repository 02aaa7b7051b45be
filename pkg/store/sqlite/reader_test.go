package sqlite

import (
	"fmt"
)

func childView(args []string) error {
	r, err := openReader(args[0])
	if err != nil {
		return err
	}
	fmt.Println(r.Header().ID)
	return r.Close()
}
