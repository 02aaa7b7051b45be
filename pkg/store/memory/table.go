package memory

import (
	"math/bits"
	"slices"
	"sort"
)

// firstBlock is the size of a table's first block; each later one doubles.
const firstBlock = 8

// table is an append-only sequence. Growing it moves nothing, so a copy of the
// struct is a snapshot that may be read while the original grows.
type table[T any] struct {
	blocks [][]T
	n      int
}

// locate returns the block of an item and its place there.
func locate(i int) (block, at int) {
	i += firstBlock
	block = bits.Len(uint(i)) - bits.Len(firstBlock)
	return block, i - firstBlock<<block
}

func (t *table[T]) add(x T) {
	block, at := locate(t.n)
	if block == len(t.blocks) {
		t.blocks = append(t.blocks, make([]T, firstBlock<<block))
	}
	t.blocks[block][at] = x
	t.n++
}

// at returns an item, which must not be changed.
func (t table[T]) at(i int) *T {
	block, at := locate(i)
	return &t.blocks[block][at]
}

// search returns the index of the first item that is not below, in a table that
// is sorted so.
func (t table[T]) search(below func(*T) bool) int {
	return sort.Search(t.n, func(i int) bool { return !below(t.at(i)) })
}

// clone is a table that may grow on its own.
func (t table[T]) clone() table[T] {
	c := table[T]{blocks: make([][]T, len(t.blocks)), n: t.n}
	for i, b := range t.blocks {
		c.blocks[i] = slices.Clone(b)
	}
	return c
}
