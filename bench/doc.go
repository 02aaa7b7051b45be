// Package bench measures drover against yardsticks that drover itself must not
// link. It is a module of its own: its C SQLite needs a C compiler and stays out
// of drover's dependencies.
package bench
