package search

// HoldMoment reads until end is called.
func (x *Index) HoldMoment() (end func(), err error) {
	if _, err := x.conn.exec("BEGIN"); err != nil {
		return nil, err
	}
	var n int64
	_, err = x.conn.row("SELECT count(*) FROM sessions", nil, &n)
	return func() { _, _ = x.conn.exec("ROLLBACK") }, err
}
