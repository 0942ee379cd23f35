import { type Caller, type Claims, type ClaimValue, type McpView, NO_CLAIMS } from '../core/index.ts'
import { parseJsonObject } from '../http/index.ts'

/** More than a request that is evaluated can have, which is part of a call. */
const MAX_DEPTH = 80
const MAX_TOOLS = 10_000
const MAX_TASKS = 10_000
const MAX_TASKS_OF_CALLER = 256
const MAX_NAME = 256
/** Characters of a call that created a task, and of all of them. */
const MAX_CALL = 64 * 1024
const MAX_CALLS = 16 * 1024 * 1024
const HINTS: ReadonlySet<string> = new Set(['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'])

/** What this process has seen of a backend: hints of its tools, and which call created which task. */
export interface BackendMemory {
  annotationsOf(tool: string): Claims
  /** Notes the hints of an item of `tools/list`. */
  noteTool(tool: string, annotations: unknown): void
  /** The call that created a task of this caller; undefined for an unknown one. */
  taskOf(caller: Caller, id: string): McpView | undefined
  /** Not of a call above 64 KiB, whose task stays unknown. */
  noteTask(caller: Caller, id: string, call: McpView): void
}

/** Memory of backends that outlives a configuration; bounded, the oldest entries go first. */
export interface ProtocolMemory {
  of(route: string, target: string): BackendMemory
}

export function createProtocolMemory(): ProtocolMemory {
  const hints = new Map<string, Claims>()
  const tasks = new Map<string, { readonly call: McpView; readonly length: number }>()
  let length = 0
  const perCaller = new Map<string, Set<string>>()

  const forget = (key: string): void => {
    length -= tasks.get(key)?.length ?? 0
    tasks.delete(key)
    const owner = key.slice(0, key.indexOf('\n'))
    const own = perCaller.get(owner)
    own?.delete(key)
    if (own?.size === 0) perCaller.delete(owner)
  }

  return {
    of(route, target) {
      const ownerOf = (caller: Caller): string =>
        JSON.stringify(caller.kind === 'anonymous' ? [route] : [route, caller.issuer, caller.identity])
      return {
        annotationsOf: (tool) => hints.get(`${target}\n${tool}`) ?? NO_CLAIMS,
        noteTool(tool, annotations) {
          const key = `${target}\n${tool}`
          hints.delete(key)
          const known = hintsIn(annotations)
          if (known === undefined || tool.length > MAX_NAME) return
          hints.set(key, known)
          const [oldest] = hints.size > MAX_TOOLS ? hints.keys() : []
          if (oldest !== undefined) hints.delete(oldest)
        },
        taskOf: (caller, id) => tasks.get(`${ownerOf(caller)}\n${id}`)?.call,
        noteTask(caller, id, call) {
          const text = JSON.stringify(call)
          if (id.length > MAX_NAME || text.length > MAX_CALL) return
          const owner = ownerOf(caller)
          const key = `${owner}\n${id}`
          const own = perCaller.get(owner) ?? new Set<string>()
          own.add(key)
          perCaller.set(owner, own)
          length += text.length - (tasks.get(key)?.length ?? 0)
          // A copy: parts of the request would keep all of its text.
          tasks.set(key, {
            call: parseJsonObject(text, { maxDepth: MAX_DEPTH }) as unknown as McpView,
            length: text.length,
          })
          const [oldestOfCaller] = own
          if (own.size > MAX_TASKS_OF_CALLER && oldestOfCaller !== undefined) forget(oldestOfCaller)
          for (const oldest of tasks.keys()) {
            if (tasks.size <= MAX_TASKS && length <= MAX_CALLS) break
            forget(oldest)
          }
        },
      }
    },
  }
}

function hintsIn(annotations: unknown): Claims | undefined {
  if (typeof annotations !== 'object' || annotations === null) return undefined
  const found = Object.entries(annotations).filter(
    (entry): entry is [string, boolean] => HINTS.has(entry[0]) && typeof entry[1] === 'boolean',
  )
  if (found.length === 0) return undefined
  const known = Object.create(null) as Record<string, ClaimValue>
  for (const [name, value] of found) known[name] = value
  return Object.freeze(known)
}
