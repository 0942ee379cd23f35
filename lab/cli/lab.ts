import { createServer } from 'node:net'
import path from 'node:path'
import { EXIT, UsageError } from '../../src/compose/index.ts'
import type { Lab, LabReplicas } from './lab-compose.ts'
import { LAB_PORT_OPTIONS, LAB_PORTS, type LabPorts } from './lab-ports.ts'
import { findRedisServer, REDIS_MISSING } from './lab-replicas.ts'
import {
  inspectorOf,
  inspectorOptions,
  PORT,
  wholeNumber,
  type CommandSpec,
  type Parsed,
} from '../../src/cli/options/index.ts'
import { CommandFailed, labConfig, loggedCommand, ownCommand, printedPath, serve } from '../../src/cli/index.ts'

const port = (what: string, fallback?: number) =>
  ({
    type: 'string',
    is: PORT,
    value: 'PORT',
    help: `Port of ${what}; 0 takes a free one. Default ${fallback === undefined ? '' : `${fallback}, or `}a free one.`,
  }) as const

const MOST_REPLICAS = 8

/** The table of its options. */
export const LAB_SPEC: CommandSpec = {
  name: 'extauth lab',
  summary:
    'Runs the proxy with config/lab and a demo service for everything that it connects to: MCP server, identity provider,\nOAuth 2.0 provider, STS. For trials only; all of them listen on loopback.',
  options: {
    port: port('the proxy', LAB_PORTS.proxy),
    'admin-port': port("the proxy's health, readiness and metrics", LAB_PORTS.admin),
    'idp-port': port('the identity provider', LAB_PORTS.identity),
    'idp-tls-port': port('the identity provider on TLS', LAB_PORTS.identityTls),
    'backend-port': port('the MCP server', LAB_PORTS.backend),
    'sts-port': port('the STS', LAB_PORTS.sts),
    'workspace-port': port('the OAuth 2.0 provider with nested tokens', LAB_PORTS.workspace),
    'metadata-port': port('the metadata service of AWS', LAB_PORTS.metadata),
    replicas: {
      type: 'string',
      is: wholeNumber(1, MOST_REPLICAS),
      value: 'N',
      help: `Run so many proxies (at most ${MOST_REPLICAS}) on one Redis Sentinel, which is started too. Default 1, without Redis.`,
    },
    'replica-port': {
      ...port('the second proxy, then of those after it'),
      multiple: true,
    },
    'replica-admin-port': {
      ...port('their health, readiness and metrics'),
      multiple: true,
    },
    'redis-port': port('the Redis of --replicas'),
    'sentinel-port': port('its Sentinel'),
    'show-claims': {
      type: 'boolean',
      help: 'Shows claims and subjects on /decisions and /inspect of the admin listener.',
    },
    conformance: { type: 'boolean', help: 'The MCP server has the tools of the official conformance suite too.' },
    ...inspectorOptions('bodies'),
  },
  notes:
    '`extauth lab token` prints a token of the running lab, `extauth lab login` one after a login at the proxy itself;\n`extauth lab connect` connects an account of a user. See their --help.\n\nExit codes: 0 stopped on request, 1 a port is in use or the lab cannot start, 2 usage.',
}

/** `extauth lab`: runs until it is asked to stop. */
export const runLab = loggedCommand(LAB_SPEC, 'warn', async ({ options, io, log }) => {
  const count = Number(options.text('replicas') ?? '1')
  const server = count === 1 ? undefined : await findRedisServer(io.env['PATH'])
  if (count > 1 && server === undefined) throw new CommandFailed(REDIS_MISSING)
  checkReplicaPorts(options, count)
  const { ports, busy } = await choosePorts(options)
  // Loaded when it is needed: `lab token` needs no proxy.
  const { startLab } = await import('./lab-compose.ts')
  await serve({ io, log }, async () => {
    const shown = { ...inspectorOf(options), showClaims: options.flag('show-claims') }
    const conformance = options.flag('conformance')
    const replicas = server === undefined ? {} : { replicas: { count, server, ...replicaPorts(options) } }
    const lab = await startLab({ ports, log, conformance, ...shown, ...replicas }).catch((error: unknown) => {
      const taken = busyPort(error)
      if (taken === undefined) throw error
      throw new CommandFailed(busyMessage(taken, options))
    })
    return { banner: elsewhere(busy) + describe(lab, ports), reload: () => lab.reload(), close: () => lab.close() }
  })
  return EXIT.fine
})

const REPLICA_OPTIONS = ['replica-port', 'replica-admin-port', 'redis-port', 'sentinel-port']

/** Throws `UsageError` for ports of what does not run. */
function checkReplicaPorts(options: Parsed, count: number): void {
  for (const name of REPLICA_OPTIONS) {
    const most = name.startsWith('replica') ? count - 1 : Math.min(count - 1, 1)
    if (options.list(name).length <= most) continue
    throw new UsageError(count === 1 ? `--${name} is for --replicas` : `--${name} can be given ${most} times here`)
  }
}

function replicaPorts(options: Parsed): Pick<LabReplicas, 'ports' | 'redisPorts'> {
  const numbers = (name: string): number[] => options.list(name).map(Number)
  const [proxies, admins] = [numbers('replica-port'), numbers('replica-admin-port')]
  const ports = Array.from({ length: Math.max(proxies.length, admins.length) }, (_, index) => ({
    proxy: proxies[index] ?? 0,
    admin: admins[index] ?? 0,
  }))
  // 0 is what they take by themselves: a free one.
  const [redis, sentinel] = ['redis-port', 'sentinel-port'].map((name) => numbers(name).at(-1) || undefined)
  return { ports, redisPorts: { redis, sentinel } }
}

function elsewhere(busy: readonly number[]): string {
  if (busy.length === 0) return ''
  const [word, verb] = busy.length === 1 ? ['Port', 'is'] : ['Ports', 'are']
  return `${word} ${busy.join(', ')} ${verb} in use; this lab listens elsewhere.\n\n`
}

/**
 * The ports that were asked for; of the usual ones those that are free, and any free one for each that is not. Throws
 * `CommandFailed` where one that was asked for is taken: before anything is loaded or started.
 */
async function choosePorts(options: Parsed): Promise<{ readonly ports: LabPorts; readonly busy: readonly number[] }> {
  const busy: number[] = []
  const choose = async (which: keyof LabPorts): Promise<[string, number]> => {
    const asked = options.text(LAB_PORT_OPTIONS[which])
    const port = Number(asked ?? LAB_PORTS[which])
    if (await isFree(port)) return [which, port]
    if (asked !== undefined) throw new CommandFailed(busyMessage(port, options))
    busy.push(port)
    return [which, 0]
  }
  const chosen = await Promise.all((Object.keys(LAB_PORT_OPTIONS) as (keyof LabPorts)[]).map(choose))
  return { ports: Object.fromEntries(chosen) as unknown as LabPorts, busy: busy.toSorted((a, b) => a - b) }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })

/** The port that was taken, wherever in the chain of causes the operating system says so. */
function busyPort(error: unknown): number | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code, port: taken } = at as NodeJS.ErrnoException & { port?: unknown }
    if (code === 'EADDRINUSE' && typeof taken === 'number') return taken
  }
  return undefined
}

function busyMessage(busy: number, options: Parsed): string {
  const names = [...Object.values(LAB_PORT_OPTIONS), ...REPLICA_OPTIONS]
  const option = names.find((name) => options.list(name).some((text) => Number(text) === busy)) ?? 'port'
  return `port ${busy} is in use. Choose another one with --${option} PORT, or any free one with --${option} 0.`
}

/** A call to try: a curl command with a token of one of these commands; without one, no token. */
interface Call {
  /** Arguments of `extauth lab token`. */
  readonly token?: string
  /** Arguments of `extauth lab login`, for routes whose callers log in at the proxy itself. */
  readonly login?: string
  /** Arguments of `extauth lab connect`, which runs before the call. */
  readonly connect?: string
}

interface Row {
  readonly path: string
  readonly backendSees: string
  readonly calls: readonly Call[]
}

const ALICE: Call = { token: '--sub alice' }
const ALICE_LOGS_IN = (route: string): readonly Call[] => [{ login: `--route ${route} --user alice` }]

const ROWS: readonly Row[] = [
  { path: '/unauthenticated', backendSees: 'no credential', calls: [{}] },
  { path: '/header-injection', backendSees: 'the header X-Api-Key', calls: [{}] },
  { path: '/bearer-token', backendSees: 'a fixed bearer token', calls: [ALICE] },
  {
    path: '/rules',
    backendSees: 'a fixed bearer token, in requests that rules allow',
    calls: [{ token: '--sub bob --groups dev' }],
  },
  { path: '/client-credentials', backendSees: "the proxy's own token", calls: [ALICE] },
  {
    path: '/token-exchange',
    backendSees: "a token exchanged for the caller's",
    calls: [{ token: '--sub alice --groups admins,dev' }],
  },
  { path: '/obo', backendSees: "a token on the caller's behalf, as Entra ID issues it", calls: [ALICE] },
  {
    path: '/cloud-sts',
    backendSees: "a signature as the role that the caller's groups select: lab-admin, lab-developer, lab-reader",
    calls: [{ token: '--sub alice --groups admins' }, { token: '--sub bob --groups dev' }, { token: '--sub carol' }],
  },
  { path: '/aws-service', backendSees: "a signature as the proxy's own role", calls: [ALICE] },
  {
    path: '/aws-chained',
    backendSees: 'a signature as role lab-search behind two others, with tags of the caller',
    calls: [{ token: '--sub alice --claim team=search' }],
  },
  {
    path: '/connected',
    backendSees: "a token of the caller's own account at the workspace, which the caller connects once",
    calls: [{ ...ALICE, connect: '--sub alice' }],
  },
  {
    path: '/connected-key',
    backendSees: "the caller's own key, which the caller enters once",
    calls: [{ ...ALICE, connect: '--sub alice --provider tracker' }],
  },
  { path: '/upstream', backendSees: "the user's own token of the workspace", calls: ALICE_LOGS_IN('/upstream') },
  {
    path: '/upstream-exchange',
    backendSees: "a token exchanged for the user's upstream token",
    calls: ALICE_LOGS_IN('/upstream-exchange'),
  },
  {
    path: '/xaa',
    backendSees: "a token of its own authorization server, for the identity provider's assertion about the user",
    calls: ALICE_LOGS_IN('/xaa'),
  },
]

/** The lab's output on start: addresses, routes, and a command to try for each. */
function describe(lab: Lab, ports: LabPorts): string {
  const { identity, sts, backend } = lab
  const request = printedPath(path.join(labConfig(), 'show-request.curl'))
  const extauth = ownCommand()
  const proxyPort = ports.proxy === LAB_PORTS.proxy ? '' : ` --port ${new URL(lab.url).port}`
  const idpPort = ports.identity === LAB_PORTS.identity ? '' : ` --idp-port ${new URL(identity.url).port}`
  const wide = Math.max(...ROWS.map((row) => row.path.length)) + 2
  const lines = [
    'The extauth lab runs: the proxy, and a demo service for everything that it connects to. All listen on loopback.',
    '',
    `  proxy              ${lab.url}`,
    `  health, metrics    ${lab.adminUrl}`,
    ...(lab.inspectUrl === undefined ? [] : [`  inspector          ${lab.inspectUrl}`]),
    ...lab.others.flatMap(({ url, adminUrl }, index) => [
      `  replica ${index + 2}          ${url}`,
      `    health, metrics  ${adminUrl}`,
    ]),
    ...(lab.redis === undefined
      ? []
      : [`  Redis              ${lab.redis.address}`, `    its sentinel     ${lab.redis.sentinelAddress}`]),
    `  identity provider  ${identity.url}`,
    `    the same on TLS  ${identity.tlsUrl}`,
    `  MCP server         ${backend.url}`,
    `  STS                ${sts.url}`,
    `  workspace          ${lab.workspace.url}`,
    `  AWS metadata       ${lab.metadata.url}`,
    `  config             ${path.relative('.', lab.configDirectory) || '.'}`,
    '',
    'Routes, what the MCP server behind each receives, and commands to try (from this folder):',
  ]
  for (const { path: route, backendSees, calls } of ROWS) {
    lines.push('', `  ${route.padEnd(wide)}${backendSees}`)
    for (const { token, login, connect } of calls) {
      const command = login === undefined ? token && `token ${token}${idpPort}` : `login ${login}${proxyPort}`
      const header = command === undefined ? '' : ` -H "Authorization: Bearer $(${extauth} lab ${command})"`
      if (connect !== undefined) lines.push(`    ${extauth} lab connect ${connect}${proxyPort}${idpPort}`)
      lines.push(`    curl -K ${request} ${lab.url}${route}${header}`)
    }
  }
  if (lab.others.length > 0) {
    lines.push(
      '',
      'All proxies share their state in Redis: a login at one is valid at the others, which use its credentials too:',
      '',
      `    token=$(${extauth} lab login --route /upstream --user alice${proxyPort})`,
      ...[lab, ...lab.others].map(
        ({ url }) => `    curl -K ${request} ${url}/upstream -H "Authorization: Bearer $token"`,
      ),
    )
  }
  lines.push('', 'Stop with Ctrl-C.', '')
  return lines.join('\n')
}
