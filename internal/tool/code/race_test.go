//go:build race

package code

// raceDetector tells that the engine, which is built with it, is ten and more times slower.
const raceDetector = true
