import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { extauth, type Running } from './process.ts'
import { freePort } from './run.ts'

const ROOT = path.join(import.meta.dirname, '../..')
const README = readFileSync(path.join(ROOT, 'README.md'), 'utf8')

interface Block {
  readonly script: string
  readonly mustFail: boolean
}

/** The commands of the tour, word for word, in order. */
const TOUR: readonly Block[] = [...README.matchAll(/<!-- tour( fails)? -->\s+```sh\n(.*?)```/gs)].map((match) => ({
  script: match[2] ?? '',
  mustFail: match[1] !== undefined,
}))

const PORTS = { port: 8080, 'admin-port': 8081, 'idp-port': 8082, 'backend-port': 8083, 'sts-port': 8084 }
/** Port in the README → port here: the same, unless something else on this machine has one of them. */
const ports = new Map<number, number>(Object.values(PORTS).map((port) => [port, port]))

async function choosePorts(): Promise<string[]> {
  const taken = await Promise.all([...ports.keys()].map((port) => isTaken(port)))
  if (!taken.includes(true)) return []
  for (const port of ports.keys()) ports.set(port, await freePort())
  return Object.entries(PORTS).flatMap(([option, port]) => [`--${option}`, String(ports.get(port))])
}

const isTaken = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(true))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(false)))
  })

function bash(text: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const script = text.replace(
    /(127\.0\.0\.1:)(\d+)/g,
    (_, host: string, port: string) => `${host}${ports.get(Number(port)) ?? port}`,
  )
  const env = { ...process.env, EXTAUTH_IDP_PORT: String(ports.get(8082)) }
  return new Promise((resolve) => {
    execFile('bash', ['-uo', 'pipefail', '-c', script], { cwd: ROOT, env, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
    )
  })
}

let lab: Running
let portOptions: string[]

beforeAll(async () => {
  portOptions = await choosePorts()
  lab = extauth(['lab', ...portOptions], { cwd: ROOT })
  for (let tries = 0; tries < 100 && !lab.stdout().includes('Stop with Ctrl-C'); tries++)
    await new Promise((resolve) => setTimeout(resolve, 100))
}, 15_000)
afterAll(async () => {
  lab.process.kill('SIGTERM')
  expect(await lab.ended).toBe(0)
})

describe("the README's tour, run word for word against npm start's lab", () => {
  const needsToken = TOUR.find(({ script }) => script.startsWith('token='))?.script.split('\n')[0] ?? ''

  it('has all its stations', () => {
    expect(lab.stderr()).toBe('')
    expect(TOUR).toHaveLength(7)
    expect(needsToken).toContain('lab token')
  })

  it.each(TOUR.map(({ script, mustFail }) => [script.trim().split('\n').at(-1) ?? '', script, mustFail] as const))(
    '%s',
    async (_name, script, mustFail) => {
      const { code, stdout, stderr } = await bash(script.startsWith('token=') ? script : `${needsToken}\n${script}`)
      expect({ failed: code !== 0, stderr }).toMatchObject({ failed: mustFail })
      expect(stdout).not.toBe('')
    },
    60_000,
  )

  it('shows what it promises', async () => {
    const [apiKey, challenge, bearer, exchanged, role, mistake, inspector] = await Promise.all(
      TOUR.map(
        async ({ script }) => (await bash(script.startsWith('token=') ? script : `${needsToken}\n${script}`)).stdout,
      ),
    )
    expect(apiKey).toContain('x-api-key')
    expect(challenge).toContain('HTTP/1.1 401')
    expect(challenge).toContain(`"authorization_servers":["http://127.0.0.1:${ports.get(8082)}"]`)
    expect(bearer).toContain('Bearer lab-bearer-token-that-is-no-secret')
    expect(exchanged).toContain('lab-backend')
    expect(exchanged).toContain('"type":"tokenExchange"')
    expect(role).toContain('AWS4-HMAC-SHA256')
    expect(role).toContain('role/lab-admin')
    expect(mistake).toContain('bearerToken')
    expect(mistake).toMatch(/oops\.yaml:6:3 /)
    expect(inspector).toContain('show_request')
  }, 120_000)
})

describe("the lab's own commands", () => {
  it('work as they are printed', async () => {
    const commands = lab.stdout().match(/^ {4}curl .*$/gm) ?? []
    expect(commands).toHaveLength(7)
    for (const command of commands) {
      const { code, stdout } = await bash(command)
      expect([command, code]).toEqual([command, 0])
      expect(stdout).toContain('"result"')
    }
  }, 60_000)

  it('say clearly that a port is busy, and how to choose another', async () => {
    const second = extauth(['lab', ...portOptions], { cwd: ROOT })
    expect(await second.ended).toBe(1)
    expect(second.stderr()).toContain('is in use')
    expect(second.stderr()).toContain('--')
  })
})
