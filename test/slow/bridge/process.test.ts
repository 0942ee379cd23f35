import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { spawnExtauth } from '../../support/e2e/process.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'
import { INITIALIZE, shakeHands, startServer } from '../../support/bridge/harness.ts'

let lab: TestLab
let directory: string
const started: ChildProcess[] = []

beforeAll(async () => {
  lab = await openLab()
  directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-process-'))
})
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})
afterAll(async () => {
  await lab.close()
  await rm(directory, { recursive: true })
})

/** A real bridge and what it printed. */
function start(args: readonly string[] = ['--url', `${lab.url}/unauthenticated`], env: Record<string, string> = {}) {
  const child = spawnExtauth(['stdio', ...args], ['pipe', 'pipe', 'pipe'], { env })
  started.push(child)
  const printed = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (printed.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (printed.stderr += chunk.toString()))
  const messages = () =>
    printed.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { id?: unknown; method?: string; error?: { code: number; data?: unknown } })
  return {
    child,
    printed,
    messages,
    ended: once(child, 'exit') as Promise<[number | null, string | null]>,
    send: (...lines: (object | string)[]) => {
      for (const line of lines)
        child.stdin?.write(`${typeof line === 'string' ? line : JSON.stringify({ jsonrpc: '2.0', ...line })}\n`)
    },
    answer: (id: unknown) =>
      vi.waitFor(() => expect(messages().find((message) => message.id === id)).toBeDefined(), {
        timeout: 20_000,
        interval: 20,
      }),
  }
}

const sessions = () => lab.backend.sessions().length

async function shaken(args?: readonly string[], env?: Record<string, string>) {
  const bridge = start(args, env)
  bridge.send(INITIALIZE)
  await bridge.answer(0)
  bridge.send({ method: 'notifications/initialized' }, { id: 1, method: 'tools/list' })
  await bridge.answer(1)
  return bridge
}

test('standard output has messages only, whatever comes in; the log goes to standard error', async () => {
  const bridge = await shaken(['--config', lab.configDirectory, '--route', 'unauthenticated'])
  bridge.send('no JSON', { id: 2, method: 'no/such/method' })
  await bridge.answer(2)
  bridge.child.stdin?.end()
  expect(await bridge.ended).toEqual([0, null])
  expect(bridge.messages().map(({ id }) => id)).toEqual([0, 1, null, 2])
  expect(bridge.printed.stderr).toContain('"msg":"relaying messages"')
  expect(sessions()).toBe(0)
}, 40_000)

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends the session and the process, also while a call runs',
  async (signal) => {
    const bridge = await shaken()
    bridge.send({ id: 3, method: 'tools/call', params: { name: 'wait', arguments: { ms: 60_000 } } })
    bridge.send({ id: 4, method: 'tools/list' })
    await bridge.answer(4)
    expect(sessions()).toBe(1)
    bridge.child.kill(signal)
    expect(await bridge.ended).toEqual([0, null])
    // Unfinished requests get an error.
    expect(bridge.messages().find(({ id }) => id === 3)?.error?.data).toEqual({ reason: 'stopping' })
    expect(sessions()).toBe(0)
  },
  40_000,
)

test('--header is sent with each request, and headers of the bridge are rejected', async () => {
  const server = await startServer((arrived) => void shakeHands(arrived, 's-1'))
  const bridge = start(['--url', server.url, '--header', 'X-Team: blue', '--header', 'x-key:  a:b '])
  bridge.send(INITIALIZE)
  await bridge.answer(0)
  bridge.send({ method: 'notifications/initialized' })
  await vi.waitFor(() => expect(server.by('GET')).toHaveLength(1), { timeout: 10_000, interval: 20 })
  bridge.child.stdin?.end()
  expect(await bridge.ended).toEqual([0, null])
  await server.close()
  expect(server.all.map(({ method, headers }) => [method, headers['x-team'], headers['x-key']])).toEqual(
    ['POST', 'POST', 'GET', 'DELETE'].map((method) => [method, 'blue', 'a:b']),
  )
  for (const line of ['Authorization: Bearer sesame', 'Mcp-Session-Id: 1', 'Host: a', 'no colon', 'X-A: é']) {
    const refused = start(['--url', server.url, '--header', line])
    expect(await refused.ended).toEqual([2, null])
    expect(refused.printed.stderr).toContain('--header')
    expect(refused.printed.stderr).not.toContain('sesame')
  }
}, 40_000)

test('what needs a moment when SIGTERM comes is still answered', async () => {
  const bridge = await shaken()
  bridge.send({ id: 3, method: 'tools/call', params: { name: 'wait', arguments: { ms: 300 } } })
  bridge.send({ id: 4, method: 'tools/list' })
  await bridge.answer(4)
  bridge.child.kill('SIGTERM')
  expect(await bridge.ended).toEqual([0, null])
  expect(bridge.messages().find(({ id }) => id === 3)).toMatchObject({ result: {} })
}, 40_000)

test('a signal while the last answers are waited for ends the waiting, with an answer', async () => {
  const bridge = await shaken(['--url', `${lab.url}/unauthenticated`, '--drain-grace', '30s'])
  bridge.send({ id: 3, method: 'tools/call', params: { name: 'wait', arguments: { ms: 60_000 } } })
  bridge.child.stdin?.end()
  await vi.waitFor(() => expect(bridge.printed.stderr).toContain('"msg":"stopping"'), { timeout: 10_000, interval: 20 })
  bridge.child.kill('SIGTERM')
  expect(await bridge.ended).toEqual([0, null])
  expect(bridge.messages().find(({ id }) => id === 3)?.error?.data).toEqual({ reason: 'stopping' })
}, 40_000)

test('what runs when the input ends is answered, seconds later', async () => {
  const bridge = await shaken()
  bridge.send({ id: 3, method: 'tools/call', params: { name: 'wait', arguments: { ms: 3_000 } } })
  bridge.child.stdin?.end()
  expect(await bridge.ended).toEqual([0, null])
  expect(bridge.messages().find(({ id }) => id === 3)).toMatchObject({ result: {} })
  expect(sessions()).toBe(0)
}, 40_000)

test('a client that is killed leaves neither process nor session behind', async () => {
  const before = sessions()
  const script = path.join(directory, 'client.sh')
  // The client starts the bridge as its child and is killed, so nothing closes the pipes.
  await writeFile(script, `"$@" <${directory}/pipe >${directory}/out & echo $!\nexec 3>${directory}/pipe\ncat >&3\n`)
  await once(spawn('mkfifo', [path.join(directory, 'pipe')]), 'exit')
  const bin = path.join(import.meta.dirname, '../../../bin/extauth.cjs')
  const client = spawn('sh', [script, process.execPath, bin, 'stdio', '--url', `${lab.url}/unauthenticated`], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  started.push(client)
  const [chunk] = (await once(client.stdout, 'data')) as [Buffer]
  const pid = Number(chunk.toString().trim())
  client.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...INITIALIZE })}\n`)
  await vi.waitFor(() => expect(sessions()).toBe(before + 1), { timeout: 20_000, interval: 50 })
  client.kill('SIGKILL')
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), { timeout: 20_000, interval: 50 })
  expect(sessions()).toBe(before)
}, 50_000)

test('a closed output ends it as well', async () => {
  const bridge = await shaken()
  bridge.child.stdout?.destroy()
  bridge.send({ id: 5, method: 'tools/list' })
  expect(await bridge.ended).toEqual([0, null])
  expect(sessions()).toBe(0)
}, 40_000)

test('a token file that changes while the bridge runs is read for the next request', async () => {
  const file = path.join(directory, 'token')
  await writeFile(file, await lab.token({ sub: 'alice' }))
  const bridge = await shaken(['--url', `${lab.url}/bearer-token`, '--token-file', file])
  const ask = async (id: number) => {
    bridge.send({ id, method: 'tools/list' })
    await bridge.answer(id)
    return bridge.messages().find((message) => message.id === id)
  }
  await writeFile(file, 'a.worthless.token')
  expect(await ask(2)).toMatchObject({ error: { data: { reason: 'invalid_token' } } })
  await writeFile(file, await lab.token({ sub: 'alice' }))
  expect(await ask(3)).toMatchObject({ result: { tools: expect.any(Array) as unknown } })
  await rm(file)
  expect(await ask(4)).toMatchObject({ error: { data: { reason: 'missing_token' } } })
}, 40_000)

test('a route needs its own secrets and files only', async () => {
  const folder = await mkdtemp(path.join(directory, 'one-route-'))
  const file = path.join(folder, 'proxy.yaml')
  await writeFile(
    file,
    `
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: none }
spec: { type: unauthenticated }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: secret }
spec: { type: bearerToken, bearerToken: { tokenSecretRef: { name: of-others, key: token } } }
---
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: here }
spec:
  auth: { mode: anonymous }
  routes:
    - { name: mine, path: /mine, target: "${lab.url}/unauthenticated", externalAuthConfigRef: { name: none } }
    - { name: theirs, path: /theirs, target: "${lab.url}/unauthenticated", externalAuthConfigRef: { name: secret } }
`,
  )
  const bridge = await shaken(['--config', file, '--route', 'mine'])
  expect(bridge.printed.stderr).not.toContain('of-others')
  bridge.child.stdin?.end()
  expect(await bridge.ended).toEqual([0, null])
  const other = start(['--config', file, '--route', 'theirs'])
  other.child.stdin?.end()
  await other.ended
  expect(other.printed.stderr).toContain('of-others')
  const misspelled = start(['--config', file, '--route', 'thiers'])
  await misspelled.ended
  expect(misspelled.printed.stderr).toContain('no route "thiers"; available routes: mine, theirs')
}, 60_000)

test('a route whose callers log in says where they can, when no token is stored', async () => {
  const bridge = start(['--config', lab.configDirectory, '--route', 'upstream'])
  bridge.send(INITIALIZE)
  await bridge.answer(0)
  const [answer] = bridge.messages()
  expect(answer).toMatchObject({ error: { data: { reason: 'missing_token' } } })
  expect(JSON.stringify(answer)).toContain('extauth stdio --url')
  expect(JSON.stringify(answer)).toContain('/upstream --login')
}, 40_000)

test('an abandoned login keeps no process running', async () => {
  const env = { XDG_STATE_HOME: path.join(directory, 'state'), BROWSER: '/bin/true' }
  const bridges = [0, 1].map(() => start(['--url', `${lab.url}/upstream`, '--login', '--drain-grace', '500ms'], env))
  for (const bridge of bridges) bridge.send(INITIALIZE)
  const shown = () => bridges.filter(({ printed }) => printed.stderr.includes('Open this address'))
  await vi.waitFor(() => expect(shown()).toHaveLength(1), { timeout: 20_000, interval: 50 })
  for (const bridge of bridges) bridge.child.stdin?.end()
  for (const bridge of bridges) {
    expect(await bridge.ended).toEqual([0, null])
    expect(bridge.messages()).toMatchObject([{ id: 0, error: { code: -32_000 } }])
  }
}, 40_000)

test('a bridge that is killed leaves no file and no process', async () => {
  const home = await mkdtemp(path.join(directory, 'home-'))
  const args = ['--config', lab.configDirectory, '--route', 'unauthenticated']
  const bridge = await shaken(args, { HOME: home, TMPDIR: home, XDG_STATE_HOME: path.join(home, 'state') })
  const { pid = 0 } = bridge.child
  expect(await childrenOf(pid)).toEqual([])
  bridge.child.kill('SIGKILL')
  expect(await bridge.ended).toEqual([null, 'SIGKILL'])
  expect(await readdir(home)).toEqual([])
}, 40_000)

test('a slow reader holds the server back, not memory, and ending still works meanwhile', async () => {
  const bridge = await shaken()
  const { pid = 0, stdout } = bridge.child
  const before = await residentMiB(pid)
  stdout?.pause()
  const bytes = 8 * 1024 * 1024
  // 320 MiB in all.
  for (let id = 100; id < 140; id++)
    bridge.send({ id, method: 'tools/call', params: { name: 'large_result', arguments: { bytes } } })
  let last = -1
  const isStill = async (): Promise<void> => {
    const now = await residentMiB(pid)
    const wasStill = Math.abs(now - last) < 2
    last = now
    expect(wasStill && now > before + 4).toBe(true)
  }
  await vi.waitFor(isStill, { timeout: 20_000, interval: 700 })
  expect(last - before).toBeLessThan(200)
  bridge.child.kill('SIGTERM')
  expect(await bridge.ended).toEqual([0, null])
}, 60_000)

const residentMiB = async (pid: number): Promise<number> =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

const childrenOf = async (pid: number): Promise<string[]> =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter((child) => child !== '')
