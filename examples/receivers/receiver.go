// Receives webhooks of evreg. Needs Go 1.22 or later, and no module.
//
//	go build receiver.go
//	WEBHOOK_SECRET=whsec_... ./receiver
//
// It listens on 127.0.0.1, on port 8080 or PORT: put your HTTPS proxy in front of it. Each event is stored once, as
// <event_id>.json in the folder "inbox" or INBOX. Then the request is answered. Then handle does the work.
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	tolerance = 5 * time.Minute
	maxBytes  = 2 << 20
)

type event struct {
	ID      string          `json:"event_id"`
	Action  string          `json:"action"`
	Payload json.RawMessage `json:"payload"`
}

// handle is your work. If the program dies in the middle of it, it runs again for that event at the next start.
func handle(e event) error {
	fmt.Println(e.ID, e.Action, string(e.Payload))
	return nil
}

// isGenuine checks the signature over the bytes of the body as they came: call it before you parse them.
func isGenuine(header http.Header, body, key []byte) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	// An older request may be a copy that somebody sends again.
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	// While a secret is rotated there are two signatures. One that is right is enough.
	for _, sent := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(sent), []byte(expected)) {
			return true
		}
	}
	return false
}

type receiver struct {
	key    []byte
	inbox  string
	stored chan string
}

func (r receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBytes))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if !isGenuine(request.Header, body, r.key) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var e event
	if err = json.Unmarshal(body, &e); err == nil {
		err = r.storeOnce(e.ID, body)
	}
	switch {
	case errors.Is(err, fs.ErrExist): // A duplicate.
		w.WriteHeader(http.StatusNoContent)
	case err != nil:
		log.Print(err)
		w.WriteHeader(http.StatusInternalServerError) // evreg sends the event again.
	default:
		w.WriteHeader(http.StatusNoContent)
		go func() { r.stored <- e.ID }()
	}
}

// storeOnce answers fs.ErrExist for a duplicate. A link appears whole or not at all, and only one can have the name.
func (r receiver) storeOnce(id string, body []byte) error {
	part, err := os.CreateTemp(r.inbox, "*.part")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	_, err = part.Write(body)
	if err := errors.Join(err, part.Close()); err != nil {
		return err
	}
	return os.Link(part.Name(), filepath.Join(r.inbox, id+".json"))
}

// handleStored handles one event after the other, those first that an earlier run left.
func (r receiver) handleStored(left []string) {
	for _, file := range left {
		if _, err := os.Stat(strings.TrimSuffix(file, ".json") + ".done"); err != nil {
			r.handleFile(file)
		}
	}
	for id := range r.stored {
		r.handleFile(filepath.Join(r.inbox, id+".json"))
	}
}

func (r receiver) handleFile(file string) {
	body, err := os.ReadFile(file)
	var e event
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err == nil {
		err = handle(e)
	}
	if err == nil {
		err = os.WriteFile(strings.TrimSuffix(file, ".json")+".done", nil, 0o600)
	}
	if err != nil {
		log.Printf("%s is tried again at the next start: %v", file, err)
	}
}

func main() {
	secret, isSecret := strings.CutPrefix(strings.TrimSpace(os.Getenv("WEBHOOK_SECRET")), "whsec_")
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil || !isSecret || len(key) == 0 {
		log.Fatal("WEBHOOK_SECRET must hold the secret of the subscription: whsec_...")
	}
	inbox := cmp.Or(os.Getenv("INBOX"), "inbox")
	if err := os.MkdirAll(inbox, 0o700); err != nil {
		log.Fatal(err)
	}
	r := receiver{key: key, inbox: inbox, stored: make(chan string)}
	left, err := filepath.Glob(filepath.Join(inbox, "*.json"))
	if err != nil {
		log.Fatal(err)
	}
	go r.handleStored(left)
	server := http.Server{
		Addr:        "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "8080"),
		Handler:     r,
		ReadTimeout: 10 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}
