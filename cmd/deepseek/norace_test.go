//go:build !race

package main

// slower is how many times longer a program may take under the race detector.
const slower = 1
