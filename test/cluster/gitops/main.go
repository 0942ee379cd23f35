// gitopscheck says what tools of GitOps make of objects, with their own code and no cluster: Flux's evaluation of
// `healthCheckExprs` (github.com/fluxcd/pkg/runtime/cel), kstatus as Flux computes it where there are none
// (github.com/fluxcd/cli-utils), and a health check in Lua with the interpreter and the libraries that Argo CD gives it.
//
//	gitopscheck health.lua exprs.json < objects.ndjson
//
// prints one JSON line per object: {"argocd":"Healthy","message":"…","flux":"Current","kstatus":"Current"}. `exprs.json` is
// an object with `current`, `inProgress` and `failed`.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type verdict struct {
	ArgoCD  string `json:"argocd"`
	Message string `json:"message"`
	Flux    string `json:"flux"`
	Kstatus string `json:"kstatus"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gitopscheck health.lua exprs.json < objects.ndjson")
		os.Exit(2)
	}
	script, err := os.ReadFile(os.Args[1])
	fatal(err)
	text, err := os.ReadFile(os.Args[2])
	fatal(err)
	exprs := kustomize.HealthCheckExpressions{}
	fatal(json.Unmarshal(text, &exprs))
	evaluator, err := cel.NewStatusEvaluator(&exprs)
	fatal(err)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		object := &unstructured.Unstructured{}
		fatal(object.UnmarshalJSON(lines.Bytes()))
		result := verdict{Flux: flux(evaluator, object), Kstatus: kstatus(object)}
		result.ArgoCD, result.Message = argocd(string(script), object)
		out, err := json.Marshal(result)
		fatal(err)
		fmt.Println(string(out))
	}
	fatal(lines.Err())
}

func flux(evaluator *cel.StatusEvaluator, object *unstructured.Unstructured) string {
	result, err := evaluator.Evaluate(context.Background(), object)
	if err != nil {
		return "error: " + err.Error()
	}
	return result.Status.String()
}

func kstatus(object *unstructured.Unstructured) string {
	result, err := status.Compute(object)
	if err != nil {
		return "error: " + err.Error()
	}
	return result.Status.String()
}

// argocd does as Argo CD's resource health does: what is being deleted is not shown to the script, and of Lua's libraries
// there are `base`, `table` and `package` only (no `string`), which holds unless `useOpenLibs` is set.
func argocd(script string, object *unstructured.Unstructured) (string, string) {
	if object.GetDeletionTimestamp() != nil {
		return "Progressing", "Pending deletion"
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(library.open), Protect: true}, lua.LString(library.name)); err != nil {
			return "error: " + err.Error(), ""
		}
	}
	state.SetGlobal("obj", value(state, object.Object))
	if err := state.DoString(script); err != nil {
		return "error: " + err.Error(), ""
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "error: no table", ""
	}
	health := answer.RawGetString("status").String()
	switch health {
	case "Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown":
		return health, answer.RawGetString("message").String()
	}
	return "error: no health status: " + health, ""
}

// value makes a Lua value of a JSON one; null is nil, as Argo CD has it.
func value(state *lua.LState, from any) lua.LValue {
	switch one := from.(type) {
	case bool:
		return lua.LBool(one)
	case string:
		return lua.LString(one)
	case int64:
		return lua.LNumber(one)
	case float64:
		return lua.LNumber(one)
	case []any:
		table := state.CreateTable(len(one), 0)
		for _, item := range one {
			table.Append(value(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(one))
		for name, item := range one {
			table.RawSetString(name, value(state, item))
		}
		return table
	}
	return lua.LNil
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
