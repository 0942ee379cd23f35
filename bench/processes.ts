import { type ChildProcess, fork, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve as resolved } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from './commands.ts'
import { freePort } from '../lab/free-port.ts'

/** A process of the benchmark. */
export interface Running {
  readonly pid: number
  readonly url: string
  stop(): Promise<void>
}

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
/** The launcher of this checkout. */
export const LAUNCHER = here('../bin/extauth.cjs')
const TYPES = ['unauthenticated', 'headerInjection', 'bearerToken'] as const
export type MeasuredType = (typeof TYPES)[number]
export const MEASURED_TYPES: readonly MeasuredType[] = TYPES

const PATIENCE_MS = 2000

const stopChild = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  // Asked first, because what Node compiled is kept only by who ends by himself.
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  await gone
  clearTimeout(timer)
}

/** Forks a script of this directory and waits for its first message: the URL where it listens. */
export const forkScript = async (
  script: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): Promise<Running & { child: ChildProcess }> => {
  const child = fork(here(script), [...args], { env, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message: string) => resolve(message))
    child.once('exit', (code) => reject(new Error(`${script} ended with ${code}`)))
  })
  return { child, pid: child.pid ?? 0, url, stop: () => stopChild(child) }
}

export interface Generator {
  ask<Result>(command: Command): Promise<Result>
  stop(): Promise<void>
}

export const startGenerator = async (): Promise<Generator> => {
  const running = await forkScript('generator.ts')
  const { child } = running
  return {
    stop: () => running.stop(),
    ask: <Result>(command: Command) =>
      new Promise<Result>((resolve, reject) => {
        child.once('message', (message: { result?: Result; error?: string }) => {
          if (message.error === undefined) resolve(message.result as Result)
          else reject(new Error(message.error))
        })
        child.send(command)
      }),
  }
}

const MAX_MESSAGE_LENGTH = 4096
const START_MS = 90_000

const authOf = (type: MeasuredType): string => {
  if (type === 'headerInjection')
    return '  headerInjection: { headerName: X-Api-Key, valueSecretRef: { name: bench, key: key } }\n'
  return type === 'bearerToken' ? '  bearerToken: { tokenSecretRef: { name: bench, key: token } }\n' : ''
}

/** Start options of the measured proxy. */
export interface ProxyOptions {
  readonly backend: string
  /** Default `info`. */
  readonly logLevel?: string
  readonly env?: NodeJS.ProcessEnv | undefined
  /** Which `bin/extauth.cjs` is run. Default: the one of this checkout. */
  readonly launcher?: string | undefined
  /** Issuer of the callers' tokens at `/verified`; without it there is no such route. */
  readonly issuer?: { readonly url: string; readonly audience: string } | undefined
  /** Default 1. */
  readonly workers?: number
  /** Capture level of the inspector. Default: nothing. */
  readonly inspector?: 'heads' | 'bodies'
  /** Default: all of them. */
  readonly types?: readonly MeasuredType[]
  /** This many routes instead, at `/r0` and on, all with `bearerToken`: as many as there may be. */
  readonly manyRoutes?: number
  /** Documents beside these, and lines of routes that refer to them. */
  readonly documents?: readonly string[]
  readonly routes?: readonly string[]
  /** Content of `secrets/bench/ca`. Default: nothing. */
  readonly ca?: Buffer
  /** Port of the admin listener. Default: any. */
  readonly adminPort?: number | undefined
}

/** The launcher of this checkout (undefined) and that of the one that it is compared with, each with its name. */
export const launchersOf = (against: string | undefined): (readonly [name: string, launcher: string | undefined])[] => [
  ['extauth', undefined],
  ...(against === undefined ? [] : [['the other extauth', resolved(against, 'bin/extauth.cjs')] as const]),
]

const verifiedRoute = (backend: string, { url, audience }: { url: string; audience: string }): string =>
  `    - { name: verified, path: /verified, target: "${backend}/mcp", externalAuthConfigRef: { name: bearertoken }, auth: { mode: oauth, oauth: { resourceUrl: "${audience}", providers: [{ name: bench, issuerUrl: "${url}", audience: "${audience}", jwksUrl: "${url}/jwks", allowPrivateIP: true }] } } }\n`

const manifests = (options: ProxyOptions): string => {
  const { backend, issuer, types = MEASURED_TYPES, manyRoutes, documents = [], adminPort = 0 } = options
  const auths = types.map(
    (type) =>
      `apiVersion: extauth.dev/v1alpha1\nkind: MCPExternalAuthConfig\nmetadata: { name: ${type.toLowerCase()} }\nspec:\n  type: ${type}\n${authOf(type)}`,
  )
  const many = Array.from(
    { length: manyRoutes ?? 0 },
    (_, at) =>
      `    - { name: r${at}, path: /r${at}, target: "${backend}/mcp", externalAuthConfigRef: { name: bearertoken } }\n`,
  )
  const routes = types.map(
    (type) =>
      `    - { name: ${type.toLowerCase()}, path: /${type}, target: "${backend}/mcp", externalAuthConfigRef: { name: ${type.toLowerCase()} } }\n`,
  )
  const proxy = `apiVersion: extauth.dev/v1alpha1\nkind: ProxyConfig\nmetadata: { name: bench }\nspec:\n  listen: { address: "127.0.0.1:0" }\n  admin: { address: "127.0.0.1:${adminPort}" }\n  secretsDirectory: ./secrets\n  auth: { mode: anonymous }\n  routes:\n${[...(manyRoutes === undefined ? routes : many), ...(options.routes ?? [])].join('')}`
  return [...auths, ...documents, issuer === undefined ? proxy : proxy + verifiedRoute(backend, issuer)].join('---\n')
}

/**
 * Starts `extauth proxy` as a user would, with one route per measured type (`<url>/<type>`) and `<url>/verified`. Its log goes through a pipe to a process that reads it, as it does in a container.
 */
export const startProxyCommand = async (options: ProxyOptions): Promise<Running> => {
  const { logLevel = 'info', env = process.env, launcher = LAUNCHER } = options
  const directory = mkdtempSync(join(tmpdir(), 'extauth-bench-'))
  mkdirSync(join(directory, 'secrets', 'bench'), { recursive: true })
  writeFileSync(join(directory, 'secrets', 'bench', 'key'), 'an-api-key')
  writeFileSync(join(directory, 'secrets', 'bench', 'token'), 'a-token')
  if (options.ca !== undefined) writeFileSync(join(directory, 'secrets', 'bench', 'ca'), options.ca)
  writeFileSync(join(directory, 'proxy.yaml'), manifests(options))
  const port = await freePort()
  const config = ['--config', join(directory, 'proxy.yaml'), '--listen', `127.0.0.1:${port}`, '--log-level', logLevel]
  if (options.workers !== undefined) config.push('--workers', String(options.workers))
  if (options.inspector !== undefined) config.push('--inspector', options.inspector)
  const running = await startProcess([launcher, 'proxy', ...config], port, '', { env }).catch((error: unknown) => {
    rmSync(directory, { recursive: true, force: true })
    throw error
  })
  const stop = async (): Promise<void> => {
    await running.stop()
    rmSync(directory, { recursive: true, force: true })
  }
  return { ...running, stop }
}

/** Starts a program (default: Node) and waits until it listens on `port`; `path` is the end of its URL. */
export const startProcess = async (
  argv: readonly string[],
  port: number,
  path: string,
  { env = process.env, program = process.execPath }: { env?: NodeJS.ProcessEnv; program?: string } = {},
): Promise<Running> => {
  const child = spawn(program, [...argv], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let beginning = ''
  child.stderr.on('data', (chunk: Buffer) => {
    if (beginning.length < MAX_MESSAGE_LENGTH) beginning += chunk.toString()
  })
  const stop = (): Promise<void> => stopChild(child)
  const until = Date.now() + START_MS
  while (child.exitCode === null && Date.now() < until) {
    if (await isListening(port)) return { pid: child.pid ?? 0, url: `http://127.0.0.1:${port}${path}`, stop }
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await stop()
  throw new Error(`${program} did not start: ${beginning}`)
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

/** CPU time of a process with all its threads and of those that it started, in nanoseconds. */
export const cpuOf = (pid: number): number => {
  let total = childrenOf(pid).reduce((sum, child) => sum + cpuOf(child), 0)
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      total += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0])
    } catch {
      // A thread that has just ended.
    }
  }
  return total
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number)

/** A process and all those that it started. */
export const processesOf = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(processesOf)]

/** Memory of a process in bytes, of what it shares with others its part. */
export const shareOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024

/** Files that a process of Node may have open on this machine. */
export const openFilesLimit = (): number =>
  Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] ?? Infinity)

/** The most that it was since `clear_refs`. */
export const peakOf = (pid: number): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024

/** Resident memory of a process in bytes. */
export const memoryOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
