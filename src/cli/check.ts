import { Secret, SYSTEM_CLOCK } from '../core/index.ts'
import { type ResolvedProxy, STDIN } from '../load/index.ts'
import { ConfigError, EXIT, type Io, UsageError, loadProxyConfig } from '../compose/index.ts'
import { readInput } from '../examine/explain/index.ts'
import { MAX_TOKEN_BYTES, tokenIn } from './token-file.ts'
import { command } from './command.ts'
import { FILE, matching, oneOf, TEXT } from './options/option-values.ts'
import type { CommandSpec, Parsed } from './options/options.ts'
import { PROXY_SPEC } from './proxy.ts'
import { stdinFor } from './options/source-options.ts'
import { runChecks, countsOf, renderSection, renderSummary, renderFailures } from '../examine/check/index.ts'

/** Options shared with `extauth proxy`. */
const AS_PROXY: ReadonlySet<string> = new Set([
  'config',
  'target',
  'external-auth',
  'callers',
  'ignore-manifest-callers',
  'secrets-dir',
  'namespace',
  'api-group',
  'sts-endpoint',
])

const UPSTREAM_AND_FILE = matching('UPSTREAM=FILE', /^[^=\p{Cc}]+=[^\p{Cc}]+$/u)

export const CHECK_SPEC: CommandSpec = {
  name: 'extauth check',
  summary: 'Tests every dependency (IdP, STS, backend) without serving traffic.',
  positionals: '[FILE|DIR…]',
  completes: 'file',
  options: {
    ...Object.fromEntries(Object.entries(PROXY_SPEC.options).filter(([name]) => AS_PROXY.has(name))),
    route: { type: 'string', is: TEXT, value: 'NAME', help: 'Checks this route only.' },
    'token-file': {
      type: 'string',
      is: FILE,
      value: 'FILE',
      help: 'Access token of a caller, to test the exchange or role; - for standard input.',
    },
    'refresh-token-file': {
      type: 'string',
      is: UPSTREAM_AND_FILE,
      value: 'UPSTREAM=FILE',
      help: 'Refresh token of an upstream, to test a refresh; - for standard input. A rotating provider invalidates it.',
    },
    verbose: { type: 'boolean', short: 'v', help: 'Also lists passed and skipped tests.' },
    quiet: { type: 'boolean', short: 'q', help: 'Prints failures and warnings only, without the summary.' },
    output: { type: 'string', is: oneOf(['text', 'json']), value: 'text|json', help: 'Default text.' },
  },
  notes: [
    'FILE|DIR is the same as --config; - is standard input.',
    'Tested per route: secrets, files, identity providers (discovery, keys, introspection), token endpoint or STS, and',
    'backend (DNS, connection, TLS; with a credential, MCP initialize or server/discover, and the tools that rules name).',
    'Then the clock.',
    'Token and introspection endpoints get an invalid token, which shows whether they accept the client; upstreams get',
    'an invalid refresh token, which shows how they reject one.',
    'By default, prints failures, warnings and a summary. JSON output is always complete.',
    '',
    'Exit codes: 0 nothing failed, 1 a test failed or the configuration is invalid, 2 usage.',
  ].join('\n'),
}

export const runCheck = command(CHECK_SPEC, async ({ options, io }) => {
  const isJson = options.text('output') === 'json'
  const [isVerbose, isQuiet] = [options.flag('verbose'), options.flag('quiet')]
  if (isVerbose && isQuiet) throw new UsageError('--verbose and --quiet exclude each other')
  const render = isVerbose ? renderSection : renderFailures
  try {
    const config = await load(options, io)
    const sections = await runChecks(
      {
        config,
        route: options.text('route'),
        token: await tokenIn(options.text('token-file'), io),
        refreshToken: await refreshTokenOf(options, config, io),
        stsEndpoint: options.text('sts-endpoint'),
        env: io.env,
        clock: SYSTEM_CLOCK,
      },
      (section) => {
        if (!isJson) io.stdout(render(section))
      },
    )
    const counts = countsOf(sections)
    const ok = counts.failed === 0
    if (isJson) io.stdout(`${JSON.stringify({ ok, counts, sections }, null, 2)}\n`)
    else if (!isQuiet) io.stdout(renderSummary(sections))
    return ok ? EXIT.fine : EXIT.failed
  } catch (error) {
    if (error instanceof ConfigError) {
      if (isJson) io.stdout(`${JSON.stringify({ ok: false, problems: error.lines }, null, 2)}\n`)
      else for (const line of error.lines) io.stderr(`✗ ${line}\n`)
      return EXIT.failed
    }
    throw error
  }
})

async function load(options: Parsed, io: Io): Promise<ResolvedProxy> {
  const [target, externalAuth] = [options.text('target'), options.text('external-auth')]
  const configPaths = [...options.positionals, ...options.list('config')]
  const tokens = [options.text('token-file'), options.text('refresh-token-file')?.replace(/^[^=]*=/, '')]
  if ([...configPaths, ...tokens].filter((path) => path === STDIN).length > 1)
    throw new UsageError('standard input was given twice: use - for the configuration or for one token')
  if (target === undefined && configPaths.length === 0)
    throw new UsageError('needs --config PATH, or --target URL with --external-auth FILE')
  if ((target === undefined) !== (externalAuth === undefined))
    throw new UsageError('--target and --external-auth must be given together')
  const sources = {
    configPaths,
    stdin: await stdinFor(configPaths, io),
    target,
    externalAuth,
    secretsDirectory: options.text('secrets-dir'),
    callers: options.text('callers'),
    ignoreManifestCallers: options.flag('ignore-manifest-callers'),
    namespace: options.text('namespace'),
    apiGroup: options.text('api-group'),
  }
  // Files are tested one by one, so loading does not read them.
  const config = await loadProxyConfig(sources, { readsFiles: false })
  const route = options.text('route')
  if (route !== undefined && !config.routes.some(({ name }) => name === route)) {
    const known = config.routes.map(({ name }) => name).join(', ')
    throw new UsageError(`no route ${JSON.stringify(route)}; expected one of ${known}`)
  }
  return config
}

async function refreshTokenOf(options: Parsed, { authServers }: ResolvedProxy, io: Io) {
  const given = options.text('refresh-token-file')
  if (given === undefined) return undefined
  const upstream = given.slice(0, given.indexOf('='))
  const known = authServers.flatMap(({ spec }) => spec.upstreamProviders.map(({ name }) => name))
  if (!known.includes(upstream))
    throw new UsageError(
      `no upstream ${JSON.stringify(upstream)}; expected one of ${known.join(', ') || '(none is configured)'}`,
    )
  const file = given.slice(upstream.length + 1)
  const text = (await readInput(file, io, MAX_TOKEN_BYTES)).trim()
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new UsageError(`${file} contains no refresh token; expected one line of visible ASCII`)
  return { upstream, token: new Secret(text) }
}
