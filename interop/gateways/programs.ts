import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'

export type Gateway = 'nginx' | 'haproxy'

const INSTALL_MS = 180_000
const START_MS = 20_000

const isHere = (program: string): boolean => spawnSync(program, ['-v'], { stdio: 'ignore' }).status === 0

/** Why these can't be had; undefined where they can, or are there. */
export function missingGateways(programs: readonly Gateway[]): string | undefined {
  const wanted = programs.filter((program) => !isHere(program))
  if (wanted.length === 0) return undefined
  const why = `as root, in Debian: apt-get install ${wanted.join(' ')}`
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status !== 0) return why
  const { status } = spawnSync('apt-get', ['update', '-qq'], { stdio: 'ignore', timeout: INSTALL_MS })
  return status === 0 ? undefined : "Debian's packages can't be reached"
}

/** Installs those that are not there, and starts none of their services. Throws where that does not work. */
export function installGateways(programs: readonly Gateway[]): void {
  const wanted = programs.filter((program) => !isHere(program))
  if (wanted.length === 0) return
  // Packages start what they install, at ports of their own, unless that is forbidden.
  const policy = '/usr/sbin/policy-rc.d'
  const script = `printf '#!/bin/sh\\nexit 101\\n' > ${policy}; chmod +x ${policy}
    apt-get install -y -qq --no-install-recommends ${wanted.join(' ')}; status=$?; rm -f ${policy}; exit $status`
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const { status } = spawnSync('sh', ['-c', script], { stdio: 'ignore', timeout: INSTALL_MS, env })
  if (status !== 0) throw new Error(`apt-get install ${wanted.join(' ')} did not work`)
}

/** The version that `program` prints. */
export function versionOf(program: Gateway): string {
  const { stdout, stderr } = spawnSync(program, ['-v'], { encoding: 'utf8' })
  return /\d+\.\d+\.\d+/.exec(stdout + stderr)?.[0] ?? 'of an unknown version'
}

export interface RunningGateway {
  close(): Promise<void>
}

/** Starts one in the foreground with this configuration and waits until it listens on `ports`. */
export async function startGateway(
  program: Gateway,
  directory: string,
  config: string,
  ports: readonly number[],
): Promise<RunningGateway> {
  mkdirSync(directory, { recursive: true })
  const file = path.join(directory, `${program}.conf`)
  writeFileSync(file, config)
  const args = program === 'nginx' ? ['-p', directory, '-c', file, '-e', 'stderr'] : ['-f', file]
  // By this folder it is known as one of this run: nginx writes over its environment.
  const child = spawn(program, args, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    if (said.length < 4096) said += chunk.toString()
  })
  const until = performance.now() + START_MS
  for (const port of ports) {
    while (!(await isListening(port))) {
      if (child.exitCode === null && performance.now() < until) continue
      await stop(child)
      throw new Error(`${program} does not listen: ${said}`)
    }
  }
  return { close: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await gone
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const over = (isThere: boolean): void => {
      socket.destroy()
      setTimeout(() => resolve(isThere), isThere ? 0 : 20)
    }
    socket.once('connect', () => over(true)).once('error', () => over(false))
  })
