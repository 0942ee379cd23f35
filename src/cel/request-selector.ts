import { type Claims, type McpView, NO_CLAIMS } from '../core/index.ts'
import { requestVariables, type RequestVariables } from './request-matcher.ts'

/** A pattern in which `*` means any characters, none included. */
interface Glob {
  readonly pattern: string
  matches(text: string): boolean
}

/** Compiles a pattern; matching takes at most time in proportion to text times pattern, without recursion. */
function compileGlob(pattern: string): Glob {
  const parts = pattern.split('*')
  if (parts.length === 1) return { pattern, matches: (text) => text === pattern }
  const first = parts[0] ?? ''
  const last = parts.at(-1) ?? ''
  if (parts.length === 2 && last === '') return { pattern, matches: (text) => text.startsWith(first) }
  const middle = parts.slice(1, -1).filter((part) => part !== '')
  return {
    pattern,
    matches(text) {
      if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
      const end = text.length - last.length
      let at = first.length
      for (const part of middle) {
        const found = text.indexOf(part, at)
        if (found === -1 || found + part.length > end) return false
        at = found + part.length
      }
      return true
    },
  }
}

/** Matches any characters of a string that is matched as a whole; no URI contains it. */
const ANY = '\uFFFF'

/** How much of what a URI template (RFC 6570) expands to a pattern matches, as far as is known without its variables. */
function matchTemplate(glob: Glob, template: string): 'all' | 'some' | 'none' {
  const text = template.replace(/\{[^{}]*\}/g, ANY)
  if (glob.matches(text)) return 'all'
  return intersects(glob.pattern, text) ? 'some' : 'none'
}

/** Whether some text matches both patterns. */
function intersects(pattern: string, text: string): boolean {
  // Row by row over the pattern: which ends of the text are reachable.
  let row = closed(new Set([0]), text)
  for (const character of pattern) {
    const next = new Set<number>()
    if (character === '*') {
      const from = Math.min(...row)
      for (let at = from; at <= text.length; at++) next.add(at)
    } else
      for (const at of row) {
        if (text[at] === character) next.add(at + 1)
        if (text[at] === ANY) next.add(at)
      }
    row = closed(next, text)
    if (row.size === 0) return false
  }
  return row.has(text.length)
}

/** A variable may expand to nothing. */
function closed(row: Set<number>, text: string): Set<number> {
  for (const at of row) if (text[at] === ANY) row.add(at + 1)
  return row
}

/** Which requests are meant, as it is written. */
export interface RequestSelector {
  readonly tools?: readonly string[] | undefined
  readonly prompts?: readonly string[] | undefined
  readonly resources?: readonly string[] | undefined
  readonly methods?: readonly string[] | undefined
}

/** The same, compiled. */
export interface Selector {
  readonly tools: readonly Glob[]
  readonly prompts: readonly Glob[]
  readonly resources: readonly Glob[]
  readonly methods: readonly Glob[]
  readonly isEmpty: boolean
}

/** Compiles the shorthands of a rule, a role mapping or a credential. */
export function compileSelector({ tools = [], prompts = [], resources = [], methods = [] }: RequestSelector): Selector {
  const all = { tools, prompts, resources, methods }
  return {
    tools: tools.map(compileGlob),
    prompts: prompts.map(compileGlob),
    resources: resources.map(compileGlob),
    methods: methods.map(compileGlob),
    isEmpty: Object.values(all).every((globs) => globs.length === 0),
  }
}

/** Whether one of the shorthands names the request; without any, every request is meant. */
export function selects(selector: Selector, { method, kind, name, uri }: McpView): boolean {
  if (selector.isEmpty || matchesAny(selector.methods, method)) return true
  if (kind === 'tool') return matchesAny(selector.tools, name)
  if (kind === 'prompt') return matchesAny(selector.prompts, name)
  return kind === 'resource' && matchesAny(selector.resources, uri)
}

export const matchesAny = (globs: readonly Glob[], text: string): boolean => {
  for (const glob of globs) if (glob.matches(text)) return true
  return false
}

/** How much of a template's resources is meant. */
export function templatePart(selector: Selector, { method, uri }: McpView): 'all' | 'some' | 'none' {
  if (selector.isEmpty || matchesAny(selector.methods, method)) return 'all'
  const parts = new Set(selector.resources.map((glob) => matchTemplate(glob, uri)))
  return parts.has('all') ? 'all' : parts.has('some') ? 'some' : 'none'
}

/** The variables of expressions about one request. */
export function variablesOf(
  { mcp, claims, route }: { readonly mcp: McpView; readonly claims: Claims; readonly route: string },
  onRead?: (claim: string) => void,
): RequestVariables {
  const act = claims['act']
  const isActor = typeof act === 'object' && act !== null && !Array.isArray(act)
  const actor = isActor ? (act as Claims) : NO_CLAIMS
  return requestVariables({ mcp: mcp as unknown as Claims, claims, actor, route }, onRead)
}
