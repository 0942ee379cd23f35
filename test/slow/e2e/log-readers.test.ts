import { execFileSync, type ChildProcess } from 'node:child_process'
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import path from 'node:path'
import { Agent, request } from 'undici'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { spawnExtauth } from '../../support/e2e/process.ts'
import { authConfig, configFolder, freePort, proxyConfig } from '../../support/e2e/run.ts'
import { LAB_PORT_NAMES } from '../../support/lab-ports.ts'

const PATIENCE_MS = 60_000
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function folder(files: Record<string, string> = {}): Promise<string> {
  const made = await configFolder(files)
  cleanups.push(made.remove)
  return made.directory
}

/** A started server and where it answers: what it serves, and its health. */
interface Server {
  readonly args: readonly string[]
  readonly url: string
  readonly ops: string
}

/** A route to a closed port, so that each request is a warning in the log. */
async function proxy(): Promise<Server> {
  const [port, admin, closed] = [await freePort(), await freePort(), await freePort()]
  const directory = await folder({
    'auth.json': authConfig('none', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: [
        { name: 'r', path: '/', target: `http://127.0.0.1:${closed}/`, externalAuthConfigRef: { name: 'none' } },
      ],
    }),
  })
  const args = ['proxy', '--config', directory, '--listen', `127.0.0.1:${port}`, '--admin', `127.0.0.1:${admin}`]
  return { args, url: `http://127.0.0.1:${port}`, ops: `http://127.0.0.1:${admin}` }
}

async function registry(): Promise<Server> {
  const [port, internal] = [await freePort(), await freePort()]
  const config = path.join(import.meta.dirname, '../../../config/registry.yaml')
  const addresses = ['--address', `127.0.0.1:${port}`, '--internal-address', `127.0.0.1:${internal}`]
  const args = ['registry', '--config', config, ...addresses]
  return { args, url: `http://127.0.0.1:${port}`, ops: `http://127.0.0.1:${internal}` }
}

async function lab(): Promise<Server> {
  const ports = new Map<string, number>()
  for (const name of LAB_PORT_NAMES) ports.set(name, await freePort())
  const args = ['lab', '--log-level', 'info', ...[...ports].flatMap(([name, port]) => [`--${name}`, String(port)])]
  return { args, url: `http://127.0.0.1:${ports.get('port')}`, ops: `http://127.0.0.1:${ports.get('admin-port')}` }
}

/** Where all output goes, and what its reader does. */
interface Output {
  start(args: readonly string[]): ChildProcess
  /** The reader goes away. */
  leave(): void
}

/** A named pipe without a reader, as of `extauth … 2>&1 | sleep 1000`. */
async function fifo(): Promise<Output & { fill(): void; read(): string }> {
  const file = path.join(await folder({ x: '' }), 'pipe')
  execFileSync('mkfifo', [file])
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(file, constants.O_WRONLY)
  let isOpen = true
  const leave = (): void => {
    if (isOpen) closeSync(reader)
    isOpen = false
  }
  cleanups.push(leave, () => closeSync(writer))
  return {
    leave,
    start(args) {
      return spawnExtauth(args, ['ignore', writer, writer])
    },
    fill() {
      const filler = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK)
      try {
        while (writeSync(filler, 'x') > 0);
      } catch {
        // It is full.
      }
      closeSync(filler)
    },
    read() {
      const buffer = Buffer.alloc(1024 * 1024)
      try {
        return buffer.toString('utf8', 0, readSync(reader, buffer))
      } catch {
        return ''
      }
    },
  }
}

/** A socket, which is what a Node parent and journald give their children. */
function socket(): Output {
  let child: ChildProcess | undefined
  return {
    start: (args) => (child = spawnExtauth(args, ['ignore', 'ignore', 'pipe'])),
    leave: () => void child?.stderr?.destroy(),
  }
}

/** Starts it on free ports, again on others if another process was faster. */
async function spawned(make: () => Promise<Server>, output: Output) {
  for (;;) {
    const server = await make()
    const child = output.start(server.args)
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
    cleanups.push(async () => {
      child.kill('SIGKILL')
      await ended
    })
    const health = async (): Promise<number> => (await request(`${server.ops}/health`)).statusCode
    await vi.waitFor(async () => expect(child.exitCode ?? (await health())).not.toBe(0), {
      timeout: PATIENCE_MS,
      interval: 100,
    })
    const served = await request(`${server.url}/missing`).then(
      ({ body }) => body.dump().then(() => true),
      () => false,
    )
    if (served && child.exitCode === null) return { server, child, ended, health }
  }
}

async function start(make: () => Promise<Server>, output: Output) {
  const { server, child, ended, health } = await spawned(make, output)
  const agent = new Agent({ connections: 20 })
  cleanups.push(() => agent.destroy())
  /** All are answered, whatever with. */
  const requests = async (count: number): Promise<number> => {
    let left = count
    let answered = 0
    const worker = async (): Promise<void> => {
      while (left-- > 0) {
        const response = await request(`${server.url}/missing`, { dispatcher: agent })
        await response.body.dump()
        answered++
      }
    }
    await Promise.all(Array.from({ length: 20 }, worker))
    return answered
  }
  const metric = async (): Promise<number> => {
    const text = await (await request(`${server.ops}/metrics`)).body.text()
    return Number(/^extauth_log_lines_lost_total (\d+)/m.exec(text)?.[1])
  }
  const stop = async (): Promise<number | null> => {
    child.kill('SIGTERM')
    return ended
  }
  return { health, requests, metric, stop }
}

const SERVERS = { proxy, registry, lab }
/** More than any pipe or socket holds, at about 200 bytes each. */
const MANY = 1500

describe('a server whose output is not read', () => {
  it(
    'lab: a pipe that was full before it started does not keep it alive after SIGTERM',
    async () => {
      const output = await fifo()
      output.fill()
      const { requests, stop } = await start(lab, output)
      expect(await requests(10)).toBe(10)
      expect(await stop()).toBe(0)
    },
    PATIENCE_MS,
  )

  it.each<[keyof typeof SERVERS, 'fifo' | 'socket']>([
    ['proxy', 'fifo'],
    ['proxy', 'socket'],
    ['registry', 'fifo'],
    ['lab', 'fifo'],
  ])(
    '%s: a %s that is full stops neither requests, nor health, nor SIGTERM',
    async (name, kind) => {
      const output = kind === 'fifo' ? await fifo() : socket()
      const { requests, health, stop } = await start(SERVERS[name], output)
      expect(await requests(MANY)).toBe(MANY)
      expect(await health()).toBe(200)
      expect(await stop()).toBe(0)
    },
    PATIENCE_MS,
  )

  it.each<[keyof typeof SERVERS, 'fifo' | 'socket']>([
    ['proxy', 'fifo'],
    ['proxy', 'socket'],
    ['registry', 'fifo'],
  ])(
    '%s: a %s whose reader has gone stops nothing, and lost lines are counted',
    async (name, kind) => {
      const output = kind === 'fifo' ? await fifo() : socket()
      const { requests, health, metric, stop } = await start(SERVERS[name], output)
      output.leave()
      expect(await requests(100)).toBe(100)
      expect(await health()).toBe(200)
      await vi.waitFor(async () => expect(await metric()).toBeGreaterThanOrEqual(100), PATIENCE_MS)
      expect(await stop()).toBe(0)
    },
    PATIENCE_MS,
  )

  it(
    'what a reader finds that comes late is whole lines, from the first to the last',
    async () => {
      const output = await fifo()
      const { requests, stop } = await start(proxy, output)
      expect(await requests(MANY)).toBe(MANY)
      let text = ''
      const reading = setInterval(() => (text += output.read()), 5)
      expect(await stop()).toBe(0)
      clearInterval(reading)
      text += output.read()
      const messages = text
        .trim()
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => (JSON.parse(line) as { msg: string }).msg)
      expect(messages[0]).toBe('listening')
      expect(messages.filter((message) => message === 'request')).toHaveLength(MANY + 1)
      expect(messages.slice(-2)).toEqual(['stopping', 'stopped'])
    },
    PATIENCE_MS,
  )
})
