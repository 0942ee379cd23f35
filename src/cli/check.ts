import { Secret } from '../core/index.ts'
import { type ResolvedProxy, STDIN } from '../load/index.ts'
import { ConfigError, EXIT, type Io, UsageError, loadProxyConfig } from '../compose/index.ts'
import { readInput } from '../examine/explain/index.ts'
import { command } from './command.ts'
import { FILE, matching, oneOf, TEXT } from './options/option-values.ts'
import type { CommandSpec, Parsed } from './options/options.ts'
import { PROXY_SPEC } from './proxy.ts'
import { stdinFor } from './options/source-options.ts'
import { runChecks, countsOf, renderSection, renderSummary, renderTrouble } from '../examine/check/index.ts'

/** What it has in common with the proxy that is checked. */
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

/** The table of its options. */
export const CHECK_SPEC: CommandSpec = {
  name: 'extauth check',
  summary: 'Goes where requests would go, and says what is wrong before there is traffic.',
  positionals: '[FILE|DIR…]',
  completes: 'file',
  options: {
    ...Object.fromEntries(Object.entries(PROXY_SPEC.options).filter(([name]) => AS_PROXY.has(name))),
    route: { type: 'string', is: TEXT, value: 'NAME', help: 'Checks this route only.' },
    'token-file': {
      type: 'string',
      is: FILE,
      value: 'FILE',
      help: 'File with the access token of a caller, - for standard input: exchanges it, assumes the role.',
    },
    'refresh-token-file': {
      type: 'string',
      is: UPSTREAM_AND_FILE,
      value: 'UPSTREAM=FILE',
      help: 'File with a refresh token of this upstream, - for standard input: tries a refresh. A provider that rotates refresh tokens invalidates this one.',
    },
    quiet: { type: 'boolean', short: 'q', help: 'Prints only what failed or should be looked at.' },
    output: { type: 'string', is: oneOf(['text', 'json']), value: 'text|json', help: 'Default text.' },
  },
  notes: [
    'FILE|DIR is the same as --config, - is standard input.',
    'Per route: secrets, files, identity providers (discovery, keys, introspection), token endpoint or STS, the backend',
    '(name, connection, TLS, an MCP initialize or server/discover where there is a credential). Then the time.',
    'Token and introspection endpoints are shown a made-up token, to see whether they take the client; upstreams a made-up',
    'refresh token, to see how they refuse one.',
    '',
    'Exit codes: 0 nothing failed, 1 something failed or the configuration is refused, 2 usage.',
  ].join('\n'),
}

const MAX_TOKEN_BYTES = 64 * 1024

/** `extauth check`. */
export const runCheck = command(CHECK_SPEC, async ({ options, io }) => {
  const isJson = options.text('output') === 'json'
  const render = options.flag('quiet') ? renderTrouble : renderSection
  try {
    const config = await load(options, io)
    const sections = await runChecks(
      {
        config,
        route: options.text('route'),
        token: await tokenOf(options, io),
        refreshToken: await refreshTokenOf(options, config, io),
        stsEndpoint: options.text('sts-endpoint'),
        env: io.env,
        clock: { now: () => Date.now() },
      },
      (section) => {
        if (!isJson) io.stdout(render(section))
      },
    )
    const counts = countsOf(sections)
    const ok = counts.failed === 0
    if (isJson) io.stdout(`${JSON.stringify({ ok, counts, sections }, null, 2)}\n`)
    else if (!options.flag('quiet')) io.stdout(renderSummary(sections))
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
    throw new UsageError('standard input can be the configuration or a token, not both')
  if (target === undefined && configPaths.length === 0)
    throw new UsageError('needs --config PATH, or --target URL with --external-auth FILE')
  if ((target === undefined) !== (externalAuth === undefined))
    throw new UsageError('--target and --external-auth belong together')
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
  // Files are among what is checked here, each for itself.
  const config = await loadProxyConfig(sources, { readsFiles: false })
  const route = options.text('route')
  if (route !== undefined && !config.routes.some(({ name }) => name === route)) {
    const known = config.routes.map(({ name }) => name).join(', ')
    throw new UsageError(`no route ${JSON.stringify(route)}; there are ${known}`)
  }
  return config
}

async function refreshTokenOf(options: Parsed, { authServers }: ResolvedProxy, io: Io) {
  const given = options.text('refresh-token-file')
  if (given === undefined) return undefined
  const upstream = given.slice(0, given.indexOf('='))
  const known = authServers.flatMap(({ spec }) => spec.upstreamProviders.map(({ name }) => name))
  if (!known.includes(upstream))
    throw new UsageError(`no upstream ${JSON.stringify(upstream)}; there are ${known.join(', ') || 'none'}`)
  const file = given.slice(upstream.length + 1)
  const text = (await readInput(file, io, MAX_TOKEN_BYTES)).trim()
  if (!/^[\x21-\x7e]+$/.test(text)) throw new UsageError(`${file} does not hold a refresh token`)
  return { upstream, token: new Secret(text) }
}

async function tokenOf(options: Parsed, io: Io): Promise<Secret | undefined> {
  const file = options.text('token-file')
  if (file === undefined) return undefined
  const text = (await readInput(file, io, MAX_TOKEN_BYTES)).trim().replace(/^bearer +/i, '')
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(text)) throw new UsageError(`${file} does not hold an access token`)
  return new Secret(text)
}
