// Command peers is the official MCP SDK for Go as a server and as a client.
//
// It serves MCP with and without sessions, prints one line of JSON that says where and with which version, then reads cases
// from standard input and prints what did not go as it should, as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	largeBytes = 1 << 20
	limit      = 60 * time.Second
	sdk        = "github.com/modelcontextprotocol/go-sdk"
)

// conversation is one client at one URL.
type conversation struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Token is shown as the caller's own.
	Token string `json:"token"`
	// Shows is what the server must have been shown; empty where it does not tell.
	Shows string `json:"shows"`
}

type steps struct {
	Steps      int `json:"steps"`
	IntervalMs int `json:"intervalMs"`
}
type size struct {
	Bytes int `json:"bytes"`
}

func text(said string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}
}

// newServer has the tools of the lab's servers that conversations use.
func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "peers", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "show_request"}, func(_ context.Context, request *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return text("POST / " + strings.Join(request.Extra.Header.Values("Authorization"), ", ")), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "stream_progress"}, func(ctx context.Context, request *mcp.CallToolRequest, wanted steps) (*mcp.CallToolResult, any, error) {
		for step := 1; step <= wanted.Steps; step++ {
			time.Sleep(time.Duration(wanted.IntervalMs) * time.Millisecond)
			progress := &mcp.ProgressNotificationParams{
				ProgressToken: request.Params.GetProgressToken(),
				Progress:      float64(step),
				Total:         float64(wanted.Steps),
			}
			if err := request.Session.NotifyProgress(ctx, progress); err != nil {
				return nil, nil, err
			}
		}
		return text("done"), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "large_result"}, func(_ context.Context, _ *mcp.CallToolRequest, wanted size) (*mcp.CallToolResult, any, error) {
		return text(strings.Repeat("x", wanted.Bytes)), nil, nil
	})
	return server
}

// newEcho has tools that return what was parsed of their call.
func newEcho() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1.0.0"}, nil)
	for _, name := range []string{"get_a", "get_b", "delete_a"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return text(""), nil, nil
		})
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			params, isCall := request.GetParams().(*mcp.CallToolParamsRaw)
			if method != "tools/call" || !isCall {
				return next(ctx, method, request)
			}
			var arguments any
			if len(params.Arguments) > 0 {
				if err := json.Unmarshal(params.Arguments, &arguments); err != nil {
					return nil, err
				}
			}
			parsed, err := json.Marshal(map[string]any{"name": params.Name, "arguments": arguments})
			if err != nil {
				return nil, err
			}
			return text(string(parsed)), nil
		}
	})
	return server
}

// carrier shows a caller's token with every request.
type carrier struct{ token string }

func (c carrier) RoundTrip(request *http.Request) (*http.Response, error) {
	shown := request.Clone(request.Context())
	if c.token != "" {
		shown.Header.Set("Authorization", "Bearer "+c.token)
	}
	return http.DefaultTransport.RoundTrip(shown)
}

// converse begins, lists, calls, streams and ends; it gives what went wrong.
func converse(ctx context.Context, wanted conversation) error {
	var lock sync.Mutex
	var progress []float64
	client := mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			lock.Lock()
			defer lock.Unlock()
			progress = append(progress, request.Params.Progress)
		},
	})
	transport := &mcp.StreamableClientTransport{
		Endpoint:   wanted.URL,
		HTTPClient: &http.Client{Transport: carrier{wanted.Token}},
		MaxRetries: -1,
	}
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(listed.Tools, func(tool *mcp.Tool) bool { return tool.Name == "show_request" }) {
		return fmt.Errorf("lists no tools")
	}
	call := func(name string, arguments any, token any) (string, error) {
		params := &mcp.CallToolParams{Name: name, Arguments: arguments}
		if token != nil {
			params.SetProgressToken(token)
		}
		result, err := session.CallTool(ctx, params)
		if err != nil {
			return "", err
		}
		if len(result.Content) != 1 {
			return "", fmt.Errorf("%s gives %d parts", name, len(result.Content))
		}
		content, isText := result.Content[0].(*mcp.TextContent)
		if !isText {
			return "", fmt.Errorf("%s gives no text", name)
		}
		return content.Text, nil
	}
	shown, err := call("show_request", struct{}{}, nil)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(shown, "POST /") {
		return fmt.Errorf("calls no tool")
	}
	if wanted.Shows != "" && shown != "POST / "+wanted.Shows {
		return fmt.Errorf("is not called with the route's credential alone")
	}
	if _, err := call("stream_progress", steps{Steps: 4, IntervalMs: 50}, "progress"); err != nil {
		return err
	}
	lock.Lock()
	seen := slices.Clone(progress)
	lock.Unlock()
	// Notifications are handled beside the result, so that the last ones may not have been.
	if len(seen) == 0 || !slices.Equal(seen, []float64{1, 2, 3, 4}[:len(seen)]) {
		return fmt.Errorf("gets progress %v", seen)
	}
	large, err := call("large_result", size{Bytes: largeBytes}, nil)
	if err != nil {
		return err
	}
	if len(large) != largeBytes {
		return fmt.Errorf("gets no large result")
	}
	return session.Close()
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == sdk {
			return module.Version
		}
	}
	return "of an unknown version"
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	of := func(*http.Request) *mcp.Server { return newServer() }
	mux := http.NewServeMux()
	mux.Handle("/sessions", mcp.NewStreamableHTTPHandler(of, nil))
	mux.Handle("/stateless", mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true}))
	echo := func(*http.Request) *mcp.Server { return newEcho() }
	mux.Handle("/echo", mcp.NewStreamableHTTPHandler(echo, &mcp.StreamableHTTPOptions{Stateless: true}))
	go func() { log.Fatal(http.Serve(listener, mux)) }()
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]string{"url": "http://" + listener.Addr().String(), "version": version()}); err != nil {
		log.Fatal(err)
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var wanted conversation
		if err := in.Decode(&wanted); err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		wrong := ""
		if err := converse(ctx, wanted); err != nil {
			wrong = fmt.Sprintf("%s: %v", wanted.Name, err)
		}
		cancel()
		if err := out.Encode(map[string]string{"wrong": wrong}); err != nil {
			log.Fatal(err)
		}
	}
}
