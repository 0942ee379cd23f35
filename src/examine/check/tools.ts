import { compileSelector, matchesAny } from '../../cel/index.ts'
import { after, monotonicNow, nearest, OutboundError } from '../../core/index.ts'
import { isObject, listTools, type McpAnswer, type McpRequest, type McpSession } from '../../mcp/index.ts'
import { authsOf, hasRoles, type ResolvedRoute } from '../../resources/index.ts'
import { about, type CheckResult } from './result.ts'

const MAX_PAGES = 100
const LIST_MS = 30_000
/** Names kept for suggestions. */
const MAX_NAMES = 200

/** The `tools` of one rule, role mapping or entry of `credentials`. */
interface Patterns {
  readonly owner: string
  readonly tools: readonly string[]
}

function patternsOf(route: ResolvedRoute): readonly Patterns[] {
  const auths = [...new Map(authsOf(route).map((auth) => [auth.name, auth])).values()]
  return [
    ...(route.authorization?.rules ?? []).map(({ name, tools = [] }) => ({ owner: `rule "${name}"`, tools })),
    ...route.credentials.map(({ tools = [] }, index) => ({ owner: `credentials[${index}]`, tools })),
    ...auths
      .filter(hasRoles)
      .flatMap(({ name, spec }) =>
        (spec.roleMappings ?? []).map(({ tools = [] }, index) => ({ owner: `${name} roleMappings[${index}]`, tools })),
      ),
  ].filter(({ tools }) => tools.length > 0)
}

/** Whether a rule, role mapping or credential of the route names tools. */
export const namesTools = (route: ResolvedRoute): boolean => patternsOf(route).length > 0

/** The line about tools that could not be listed; none for a route that names no tools. */
export const untested = (route: ResolvedRoute, reason: string): readonly CheckResult[] =>
  namesTools(route)
    ? [about('tools', route.target.host).skipped(`not tested: ${reason.replace('not tried: ', '')}`)]
    : []

/** Warns about patterns that match none of the tools that the backend lists for the route's credential. */
export async function checkTools(
  route: ResolvedRoute,
  session: McpSession,
  ask: (request: McpRequest) => Promise<{ readonly answer: McpAnswer | undefined }>,
): Promise<readonly CheckResult[]> {
  const groups = patternsOf(route)
  const unmatched = new Map(
    groups
      .flatMap(({ tools }) => tools)
      .map((pattern) => [pattern, compileSelector({ tools: [pattern] }).tools] as const),
  )
  const names: string[] = []
  let count = 0
  const deadline = after(monotonicNow(), LIST_MS)
  let cursor: string | undefined
  for (let page = 0; ; page++) {
    if (page === MAX_PAGES || monotonicNow() > deadline)
      return untested(route, `the list has more than ${page} pages (at most ${MAX_PAGES}, in ${LIST_MS / 1000} s)`)
    let answer: McpAnswer | undefined
    try {
      ;({ answer } = await ask(listTools(session, cursor)))
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error
      return untested(route, `no response to tools/list (${error.kind})`)
    }
    if (answer?.result === undefined) return untested(route, whyNoList(answer))
    const { tools, nextCursor } = answer.result
    for (const tool of Array.isArray(tools) ? tools : []) {
      const name: unknown = isObject(tool) ? tool['name'] : undefined
      if (typeof name !== 'string') continue
      count += 1
      if (names.length < MAX_NAMES) names.push(name)
      for (const [pattern, globs] of unmatched) if (matchesAny(globs, name)) unmatched.delete(pattern)
    }
    if (typeof nextCursor !== 'string') break
    cursor = nextCursor
  }
  const listed = `${count} tool${count === 1 ? '' : 's'} that the backend lists`
  const warnings = groups.flatMap(({ owner, tools }) => {
    const missing = tools.filter((pattern) => unmatched.has(pattern))
    return missing.length === 0 ? [] : [warning(owner, missing, listed, names)]
  })
  return warnings.length > 0
    ? warnings
    : [about('tools', route.target.host).ok(`each pattern matches one of the ${listed}`)]
}

const whyNoList = (answer: McpAnswer | undefined): string =>
  answer === undefined
    ? 'no JSON-RPC response to tools/list'
    : answer.errorCode === undefined
      ? `the response to tools/list lacks ${answer.lacks ?? 'a result'}`
      : `tools/list returns the JSON-RPC error ${answer.errorCode}`

function warning(owner: string, missing: readonly string[], listed: string, names: readonly string[]): CheckResult {
  const shown = missing.slice(0, 10).map((pattern) => JSON.stringify(pattern))
  const rest = missing.length > shown.length ? ` and ${missing.length - shown.length} more` : ''
  const similar = missing.map((pattern) => nearest(pattern, names)).find((name) => name !== undefined)
  const suggestion = similar === undefined ? '' : `; a similar name is ${JSON.stringify(similar.slice(0, 100))}`
  return about('tools', owner).warning(
    `${shown.join(', ')}${rest} match${missing.length === 1 ? 'es' : ''} none of the ${listed}`,
    `Correct or remove the pattern${suggestion}. The list may differ with another credential.`,
  )
}
