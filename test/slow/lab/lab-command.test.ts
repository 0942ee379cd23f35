import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import path from 'node:path'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort, LAB_REDIS_RULES } from '../../../lab/index.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { ANY_LAB_PORT } from '../../support/lab-ports.ts'
import { APPLICATION_RULES } from '../../support/redis/acl.ts'
import { redisServer } from '../../support/redis/binaries.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const BIN = path.join(ROOT, 'bin/extauth.cjs')

const start = (argv: readonly string[], env: Readonly<Record<string, string>> = {}): Running =>
  extauth(['lab', ...argv], { cwd: ROOT, env })
const READY = 'Stop with Ctrl-C'

describe('extauth lab', () => {
  let lab: Running

  beforeAll(async () => {
    lab = start(ANY_LAB_PORT)
    await lab.shows(READY)
  })
  afterAll(() => void lab.process.kill('SIGKILL'))

  test('prints that it is a demo, and the addresses', () => {
    expect(lab.stdout()).toContain('a demo service for everything that it connects to')
    expect(lab.stdout().match(/https?:\/\/127\.0\.0\.1:\d+$/gm)).toHaveLength(8)
    expect(lab.stderr()).toBe('')
  })

  test('each command that it prints works as it stands', async () => {
    const commands = lab
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('    curl ') || line.includes(' lab connect '))
    expect(commands).toHaveLength(19)
    for (const command of commands) {
      const { stdout } = await promisify(execFile)('bash', ['-c', command], { cwd: ROOT })
      if (!command.startsWith('    curl ')) {
        expect(stdout).toMatch(/^Your account at (?:workspace|tracker) is connected\n$/)
        continue
      }
      expect(stdout).toMatch(
        /^POST \/\S+\n(?:[\w-]+: .*\n)+\n[^]*The server (?:asks for no credential|has verified:\n {2}\w)/i,
      )
    }
  }, 180_000)

  test('lists each route once', () => {
    const routes = lab.stdout().match(/^ {2}\/\S+/gm) ?? []
    expect(routes).toHaveLength(15)
    expect(new Set(routes).size).toBe(15)
    expect(routes).toEqual(expect.arrayContaining(['  /cloud-sts', '  /connected', '  /connected-key']))
  })

  test('lists the nine tools of the lab; those of the conformance suite need --conformance', async () => {
    expect(await toolsOf(lab.stdout())).toHaveLength(9)
    const whole = start([...ANY_LAB_PORT, '--conformance'])
    try {
      await whole.shows(READY)
      expect((await toolsOf(whole.stdout())).length).toBeGreaterThan(20)
    } finally {
      whole.process.kill('SIGKILL')
    }
  }, 60_000)

  test('SIGTERM ends it with exit code 0', async () => {
    lab.process.kill('SIGTERM')
    expect(await lab.ended).toBe(0)
    expect(lab.stderr()).toBe('')
  })
})

describe('extauth lab --replicas 2', () => {
  test('runs two proxies on one Redis: a login at one is valid at both', async () => {
    const folder = path.dirname(await redisServer())
    const names = ['replica-port', 'replica-admin-port', 'redis-port', 'sentinel-port']
    const ports = await Promise.all(names.map(() => freePort()))
    const chosen = names.map((name, index) => `--${name}=${ports[index]}`)
    const env = { PATH: `${process.env['PATH']}:${folder}` }
    const lab = start([...ANY_LAB_PORT, '--replicas', '2', ...chosen], env)
    try {
      await lab.shows(READY)
      for (const port of ports) expect(lab.stdout()).toContain(`127.0.0.1:${port}\n`)
      const proxies = lab.stdout().match(/^ {2}(?:proxy|replica 2) +(\S+)$/gm) ?? []
      expect(new Set(proxies.map((line) => line.split(/ +/).at(-1))).size).toBe(2)
      const [, token = ''] = /^ {4}token=\$\((.*)\)$/m.exec(lab.stdout()) ?? []
      const calls = lab
        .stdout()
        .split('\n')
        .filter((line) => line.endsWith('Bearer $token"'))
      expect(calls).toHaveLength(2)
      const script = [`token=$(${token})`, ...calls].join('\n')
      const { stdout } = await promisify(execFile)('bash', ['-e', '-c', script], { cwd: ROOT })
      expect(stdout.match(/workspaceUser\W+alice/g)).toHaveLength(2)
      const redis = Number(/Redis +127\.0\.0\.1:(\d+)/.exec(lab.stdout())?.[1])
      expect(await listens(redis)).toBe(true)
      lab.process.kill('SIGTERM')
      expect([await lab.ended, lab.stderr()]).toEqual([0, ''])
      expect(await listens(redis)).toBe(false)
    } finally {
      lab.process.kill('SIGKILL')
    }
  }, 60_000)

  test('gives its user of Redis the rights that the docs name', () => {
    expect(LAB_REDIS_RULES).toBe(APPLICATION_RULES)
  })

  test.each([
    [['--redis-port', '1'], '--redis-port is for --replicas'],
    [['--replicas', '2', '--replica-port', '1', '--replica-port', '2'], '--replica-port can be given 1 times here'],
  ])('%j is refused: a port of what does not run', async (argv, message) => {
    const folder = path.dirname(await redisServer())
    const env = { PATH: `${process.env['PATH']}:${folder}` }
    const { stderr, ended } = start([...ANY_LAB_PORT, ...argv], env)
    expect(await ended).toBe(2)
    expect(stderr()).toContain(message)
  })

  test('says what to install where there is no Redis', async () => {
    const { stdout, stderr, ended } = start([...ANY_LAB_PORT, '--replicas', '2'], { PATH: path.dirname(BIN) })
    expect(await ended).toBe(1)
    expect(stderr()).toContain('redis-server is not on the PATH')
    expect(stderr()).toContain('apt-get install redis-server redis-sentinel')
    expect(stdout()).toBe('')
  })

  test.each(['0', '9', 'two', '1.5'])('a number that it can’t be is a usage error: %s', async (count) => {
    const { stderr, ended } = start(['--replicas', count])
    expect(await ended).toBe(2)
    expect(stderr()).toContain('--replicas must be a number from 1 to 8')
  })
})

describe('extauth lab that cannot start', () => {
  test.each([
    '--port',
    '--admin-port',
    '--idp-port',
    '--idp-tls-port',
    '--backend-port',
    '--sts-port',
    '--workspace-port',
  ])('a busy port is named with the option that moves it: %s', async (option) => {
    const taken = createServer()
    taken.listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const { stderr, ended } = start([...ANY_LAB_PORT, option, String(port)])
    expect(await ended).toBe(1)
    expect(stderr()).toBe(
      `extauth lab: port ${port} is in use. Choose another one with ${option} PORT, or any free one with ${option} 0.\n`,
    )
    taken.close()
  })

  test('a port that is none is a usage error', async () => {
    const { stderr, ended } = start(['--port', 'http'])
    expect(await ended).toBe(2)
    expect(stderr()).toContain('--port must be a port number')
  })
})

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)))
    socket.on('error', () => resolve(false))
  })

/** Names of the tools behind the route without a credential of a lab that printed this. */
async function toolsOf(printed: string): Promise<readonly string[]> {
  const [, url = ''] = /^ {2}proxy +(\S+)$/m.exec(printed) ?? []
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/unauthenticated`)))
  try {
    const { tools } = await client.listTools()
    return tools.map(({ name }) => name)
  } finally {
    await client.close()
  }
}
