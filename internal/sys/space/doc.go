// Package space tells a full disk from other faults of writing.
package space
