// Package wine tells tests that run on Windows whether it is Wine, which has most
// of it and not all. Only on Windows there is anything to tell.
package wine
