// What a handler in Go needs, in a few lines: copy this file beside yours.
//
// Run calls the function with each event and answers with what it returns. It works with --pipeline and --protocol-fd as it is;
// what is printed goes to stderr either way.

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"os"
	"strconv"
)

// Event is one event. Value and Key are nil where they are null, or bytes that are no text: those are in the fields beside them.
type Event struct {
	ID          string  `json:"id"`
	Topic       string  `json:"topic"`
	Partition   int     `json:"partition"`
	Offset      int64   `json:"offset"`
	TimestampMs int64   `json:"timestamp_ms"`
	Key         *string `json:"key"`
	KeyBase64   []byte  `json:"key_base64"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64"`
	Attempt     int     `json:"attempt"`
	Stop        bool    `json:"stop"`
}

// Answer is what is said about an event. The zero value means: handled, nothing to write.
type Answer struct {
	ID       string `json:"id"`
	Records  []any  `json:"records,omitempty"`
	Filtered bool   `json:"filtered,omitempty"`
	Error    string `json:"error,omitempty"`
	Retry    *bool  `json:"retry,omitempty"`
}

// Run handles events until there are no more.
func Run(handle func(Event) (Answer, error)) {
	answers := os.Stdout
	if fd, err := strconv.Atoi(os.Getenv("LEFTOFF_FD")); err == nil {
		answers = os.NewFile(uintptr(fd), "answers")
	}
	// A print must not get among the answers.
	os.Stdout = os.Stderr
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(answers)
	encoder := json.NewEncoder(out)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		var event Event
		if err == nil {
			err = json.Unmarshal(line, &event)
		}
		if err != nil {
			log.Fatal(err)
		}
		if event.Stop {
			return
		}
		if event.ID != "" { // the hello has none
			answer, err := handle(event)
			if err != nil {
				answer = Answer{Error: err.Error()}
			}
			answer.ID = event.ID
			if err := encoder.Encode(answer); err != nil {
				log.Fatal(err)
			}
		}
		// With --pipeline many events may be there already: their answers are written at once.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				log.Fatal(err)
			}
		}
	}
}
