// Writes each event's value, a JSON object, to the sink, with leftoff.go beside it.
//
//	go build -o copy examples/handlers/go/copy.go examples/handlers/go/leftoff.go
//	leftoff run -t flights -g copy --data ./d --out file:copy.ndjson --pipeline 100 -- ./copy

package main

import (
	"encoding/json"
	"errors"
	"fmt"
)

func main() {
	Run(func(event Event) (Answer, error) {
		fmt.Println("copying", event.Offset) // goes to stderr
		if event.Value == nil {
			return Answer{}, errors.New("the value is no text")
		}
		record := json.RawMessage(*event.Value)
		if !json.Valid(record) {
			return Answer{}, errors.New("the value is no JSON")
		}
		return Answer{Records: []any{record}}, nil
	})
}
