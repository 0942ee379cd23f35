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
  renderReport,
} from '../examine/explain/index.ts'
import { EXIT, type Io, UsageError, loadProxyConfig } from '../compose/index.ts'
import { FILE, FILE_OR_JSON, TEXT, oneOf } from './options/option-values.ts'
import type { CommandSpec, Parsed } from './options/options.ts'
import { command } from './command.ts'
import { configOption, MANIFEST_OPTIONS } from './options/source-options.ts'

/** The table of its options. */
export const EXPLAIN_SPEC: CommandSpec = {
  name: 'extauth explain',
  summary:
    'Says which role and headers a caller would get on a route, and why. Opens no connection and reads no secret.',
  options: {
    config: configOption('A file or directory of manifests.'),
    route: { type: 'string', is: TEXT, value: 'NAME', help: 'The route; may be left out where there is only one.' },
    'token-file': { type: 'string', is: FILE, value: 'FILE', help: 'File with an access token, - for standard input.' },
    claims: {
      type: 'string',
      is: FILE_OR_JSON,
      value: 'FILE|JSON',
      help: 'Claims as a JSON object: a file, - for standard input, or the object itself.',
    },
    against: {
      type: 'string',
      is: FILE,
      multiple: true,
      value: 'PATH',
      help: 'Another configuration: lists the callers of --decisions who would get another role by it.',
    },
    decisions: {
      type: 'string',
      is: FILE,
      value: 'FILE',
      help: 'What GET /decisions of a proxy with --show-claims answered, - for standard input; with --against.',
    },
    all: { type: 'boolean', help: 'Evaluates every mapping, not only up to the first match.' },
    ...MANIFEST_OPTIONS,
    output: { type: 'string', is: oneOf(['text', 'json']), value: 'text|json', help: 'Default text.' },
  },
  notes: [
    'The signature of the token is not checked: this explains, it does not authenticate.',
    'With --against and --decisions, before is what --config decides, or what was recorded where that is left out.',
    '',
    'Exit codes: 0 a role was found (or the type has none), 3 no role, 2 the files or the input cannot be used;',
    'with --against: 0 nobody would get something else, 1 somebody would.',
  ].join('\n'),
}

/** `extauth explain`. */
export const runExplain = command(EXPLAIN_SPEC, async ({ options, io }) => {
  const output = options.text('output') ?? 'text'
  const isComparison = options.list('against').length > 0
  if (!isComparison && options.text('decisions') !== undefined) throw new UsageError('--decisions needs --against PATH')
  if (!isComparison && options.list('config').length === 0) throw new UsageError('needs --config PATH')
  if (isComparison) return explainAgainst(options, output, io)
  const caller = await callerOf(options, io)
  const report = explain(await routeOf(options), caller, Date.now(), { all: options.flag('all') })
  io.stdout(output === 'json' ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report))
  return exitCodeOf(report)
})

async function callerOf(options: Parsed, io: Io): Promise<ExplainedCaller> {
  const [token, claims] = [options.text('token-file'), options.text('claims')]
  if (token !== undefined && claims === undefined) return callerOfToken(token, io)
  if (claims !== undefined && token === undefined) return callerOfClaims(claims, io)
  throw new UsageError('needs either --token-file FILE or --claims FILE|JSON')
}

async function explainAgainst(options: Parsed, output: string, io: Io): Promise<number> {
  const file = options.text('decisions')
  if (file === undefined) throw new UsageError('--against needs --decisions FILE')
  const single = ['route', 'token-file', 'claims'].find((name) => options.text(name) !== undefined)
  if (single !== undefined)
    throw new UsageError(`--${single} is for one caller, --against compares those of --decisions`)
  const own = options.list('config')
  const before = own.length === 0 ? undefined : await routesOf(own, options)
  const others = await routesOf(options.list('against'), options)
  const { records, withoutClaims } = await readDecisions(file, io)
  const comparison = { callers: records.length, withoutClaims, changes: compare(records, before, others) }
  io.stdout(output === 'json' ? `${JSON.stringify(comparison, null, 2)}\n` : renderComparison(comparison))
  return comparison.changes.length === 0 ? EXIT.fine : EXIT.failed
}

async function routesOf(configPaths: readonly string[], options: Parsed): Promise<readonly ResolvedRoute[]> {
  const sources = {
    configPaths,
    callers: options.text('callers'),
    ignoreManifestCallers: options.flag('ignore-manifest-callers'),
    namespace: options.text('namespace'),
    apiGroup: options.text('api-group'),
  }
  const { routes } = await loadProxyConfig(sources, { readsFiles: false })
  return routes
}

async function routeOf(options: Parsed): Promise<ResolvedRoute> {
  const routes = await routesOf(options.list('config'), options)
  const name = options.text('route')
  const [only] = routes
  const found = name === undefined && routes.length === 1 ? only : routes.find((route) => route.name === name)
  if (found !== undefined) return found
  const known = routes.map((route) => route.name).join(', ')
  throw new UsageError(
    name === undefined ? `which --route? There are ${known}` : `no route ${JSON.stringify(name)}; there are ${known}`,
  )
}

function exitCodeOf({ decision }: ExplainReport): number {
  return decision === undefined || decision.refusal === undefined ? EXIT.fine : EXIT.nothingFound
}
