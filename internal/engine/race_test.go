//go:build race

package engine

// raceDetector tells that code runs ten and more times slower.
const raceDetector = true
