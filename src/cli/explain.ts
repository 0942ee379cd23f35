import type { RequestView } from '../core/index.ts'
import { JsonError, parseJsonObject } from '../http/index.ts'
import type { ResolvedProxy } from '../load/index.ts'
import type { ResolvedRoute } from '../resources/index.ts'
import {
  readDecisions,
  compare,
  renderComparison,
  callerOfClaims,
  callerOfToken,
  type ExplainedCaller,
  explain,
  type ExplainReport,
  readInput,
  renderReport,
  viewOf,
} from '../examine/explain/index.ts'
import { EXIT, type Io, UsageError, loadProxyConfig } from '../compose/index.ts'
import { FILE, FILE_OR_JSON, TEXT, oneOf } from './options/option-values.ts'
import type { CommandSpec, Parsed } from './options/options.ts'
import { command } from './command.ts'
import { configOption, MANIFEST_OPTIONS } from './options/source-options.ts'

export const EXPLAIN_SPEC: CommandSpec = {
  name: 'extauth explain',
  summary: 'Explains which role and headers a caller gets on a route, without connections or secrets.',
  options: {
    config: configOption('Configuration file or directory; - for standard input.'),
    route: { type: 'string', is: TEXT, value: 'NAME', help: 'The route; required if there are several.' },
    'token-file': { type: 'string', is: FILE, value: 'FILE', help: 'Access token file; - for standard input.' },
    claims: {
      type: 'string',
      is: FILE_OR_JSON,
      value: 'FILE|JSON',
      help: 'Claims: a JSON object, a file, or - for standard input.',
    },
    against: {
      type: 'string',
      is: FILE,
      multiple: true,
      value: 'PATH',
      help: 'New configuration: lists callers of --decisions whose role changes.',
    },
    decisions: {
      type: 'string',
      is: FILE,
      value: 'FILE',
      help: 'Response of GET /decisions (proxy --show-claims); - for standard input.',
    },
    tool: { type: 'string', is: TEXT, value: 'NAME', help: 'Tool to call: explains which rule allows or denies it.' },
    args: {
      type: 'string',
      is: FILE_OR_JSON,
      value: 'FILE|JSON',
      help: 'Arguments of the call: a JSON object, a file, or - for standard input.',
    },
    method: {
      type: 'string',
      is: TEXT,
      value: 'METHOD',
      help: 'MCP method instead of tools/call; --tool then names the prompt, --uri the resource.',
    },
    uri: { type: 'string', is: TEXT, value: 'URI', help: 'URI of the resource, with --method.' },
    all: { type: 'boolean', help: 'Evaluates all mappings and rules, beyond the first match.' },
    ...MANIFEST_OPTIONS,
    verbose: { type: 'boolean', short: 'v', help: 'Prints the whole report, not only its first eight lines.' },
    output: { type: 'string', is: oneOf(['text', 'json']), value: 'text|json', help: 'Default text.' },
  },
  notes: [
    'The token signature is not verified: explain does not authenticate.',
    'The report starts with the lines that explain the result. JSON output is always complete.',
    '--against compares with the roles of --config, or with the recorded ones if --config is absent.',
    '',
    'Exit codes: 0 a role was found (or the type has none) and the request is allowed, 2 invalid files or input,',
    '3 no role or not allowed; with --against: 0 nothing changes, 1 some decisions change.',
  ].join('\n'),
}

export const runExplain = command(EXPLAIN_SPEC, async ({ options, io }) => {
  const output = options.text('output') ?? 'text'
  const isComparison = options.list('against').length > 0
  if (!isComparison && options.text('decisions') !== undefined) throw new UsageError('--decisions needs --against PATH')
  if (!isComparison && options.list('config').length === 0) throw new UsageError('needs --config PATH')
  if (isComparison) return explainAgainst(options, output, io)
  const caller = await callerOf(options, io)
  const request = await requestOf(options, io)
  const { route, audit, connections } = await routeOf(options)
  const report = explain(route, caller, Date.now(), { all: options.flag('all'), request, audit, connections })
  const isVerbose = options.flag('verbose')
  io.stdout(output === 'json' ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report, { verbose: isVerbose }))
  return exitCodeOf(report)
})

async function callerOf(options: Parsed, io: Io): Promise<ExplainedCaller> {
  const [token, claims] = [options.text('token-file'), options.text('claims')]
  if (token !== undefined && claims === undefined) return callerOfToken(token, io)
  if (claims !== undefined && token === undefined) return callerOfClaims(claims, io)
  throw new UsageError('needs either --token-file FILE or --claims FILE|JSON')
}

/** The request of `--tool`, or of `--method`; undefined where only the caller is explained. */
async function requestOf(options: Parsed, io: Io): Promise<RequestView | undefined> {
  const [tool, method, uri, args] = ['tool', 'method', 'uri', 'args'].map((name) => options.text(name))
  if (tool === undefined && method === undefined) {
    if (args !== undefined || uri !== undefined)
      throw new UsageError('--args and --uri need --tool NAME or --method METHOD')
    return undefined
  }
  const written = args === undefined || args.trimStart().startsWith('{') ? args : await readInput(args, io)
  return viewOf({ method, name: tool, uri, args: written === undefined ? undefined : argumentsIn(written) })
}

function argumentsIn(text: string): unknown {
  try {
    return parseJsonObject(text, { maxDepth: 64 })
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new UsageError(`--args is no JSON object as the proxy takes it: ${error.message}`)
  }
}

async function explainAgainst(options: Parsed, output: string, io: Io): Promise<number> {
  const file = options.text('decisions')
  if (file === undefined) throw new UsageError('--against needs --decisions FILE')
  const single = ['route', 'token-file', 'claims', 'tool', 'method'].find((name) => options.text(name) !== undefined)
  if (single !== undefined)
    throw new UsageError(`--${single} is for a single caller; --against reads callers from --decisions`)
  const own = options.list('config')
  const before = own.length === 0 ? undefined : await routesOf(own, options)
  const others = await routesOf(options.list('against'), options)
  const { records, withoutClaims } = await readDecisions(file, io)
  const comparison = { callers: records.length, withoutClaims, changes: compare(records, before, others) }
  io.stdout(output === 'json' ? `${JSON.stringify(comparison, null, 2)}\n` : renderComparison(comparison))
  return comparison.changes.length === 0 ? EXIT.fine : EXIT.failed
}

async function configOf(configPaths: readonly string[], options: Parsed): Promise<ResolvedProxy> {
  const sources = {
    configPaths,
    callers: options.text('callers'),
    ignoreManifestCallers: options.flag('ignore-manifest-callers'),
    namespace: options.text('namespace'),
    apiGroup: options.text('api-group'),
  }
  return loadProxyConfig(sources, { readsFiles: false })
}

async function routesOf(configPaths: readonly string[], options: Parsed): Promise<readonly ResolvedRoute[]> {
  return (await configOf(configPaths, options)).routes
}

interface ExplainedRoute extends Pick<ResolvedProxy, 'audit' | 'connections'> {
  readonly route: ResolvedRoute
}

async function routeOf(options: Parsed): Promise<ExplainedRoute> {
  const { routes, audit, connections } = await configOf(options.list('config'), options)
  const name = options.text('route')
  const [only] = routes
  const found = name === undefined && routes.length === 1 ? only : routes.find((route) => route.name === name)
  if (found !== undefined) return { route: found, audit, connections }
  const known = routes.map((route) => route.name).join(', ')
  throw new UsageError(
    name === undefined
      ? `--route is required; expected one of ${known}`
      : `no route ${JSON.stringify(name)}; expected one of ${known}`,
  )
}

function exitCodeOf({ decision, request }: ExplainReport): number {
  if (request?.rules?.allowed === false) return EXIT.nothingFound
  return decision === undefined || decision.refusal === undefined ? EXIT.fine : EXIT.nothingFound
}
