import { execFile } from 'node:child_process'
import { Agent, request as httpRequest } from 'node:http'
import { readFile, rename, stat } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'
import { createSockets } from '../../support/sockets.ts'

const CREDENTIAL = 'planted-credential-of-the-backend'
const TOKEN = 'planted-token-of-the-caller'
const ARGUMENT = 'planted-argument-value'
const FREE = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']

interface Event {
  readonly type: string
  readonly outcome: string
  readonly metadata: { readonly auditId: string; readonly extra: Readonly<Record<string, unknown>> }
  readonly target: Readonly<Record<string, string>>
}

const sockets = createSockets()
const cleanups: (() => unknown)[] = []
let running: Running | undefined
afterEach(async () => {
  running?.process.kill('SIGKILL')
  await running?.ended
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
  await sockets.closeAll()
})

const configOf = (backend: string, audit: Readonly<Record<string, unknown>>): string =>
  proxyConfig({
    auth: { mode: 'anonymous' },
    audit,
    routes: [
      {
        name: 'tools',
        path: '/tools',
        target: `${backend}/mcp`,
        externalAuthConfigRef: { name: 'key' },
        authorization: { default: 'allow', rules: [{ name: 'no-deletes', tools: ['delete_*'], effect: 'deny' }] },
      },
      { name: 'plain', path: '/plain', target: `${backend}/mcp`, externalAuthConfigRef: { name: 'key' } },
    ],
  })

/** A proxy with these audit settings. Requests to `denied` are refused by a rule. */
async function start(
  audit: Readonly<Record<string, unknown>>,
  args: readonly string[] = [],
  through: readonly string[] = [],
) {
  let received = 0
  const backend = await sockets.http((request, response) => {
    const answer = (body: string): void => {
      received += 1
      const { id, params } = JSON.parse(body) as { id: number; params: { name: string } }
      const result = { content: [], ...(params.name === 'fails' ? { isError: true } : {}) }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    }
    text(request).then(answer, () => response.destroy())
  })
  const folder = await configFolder({
    'auth.json': authConfig('key', {
      type: 'headerInjection',
      headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
    }),
    'proxy.json': configOf(backend, audit),
    'secrets/api/key': CREDENTIAL,
  })
  cleanups.push(folder.remove)
  running = extauth(['proxy', '--config', folder.directory, ...FREE, ...args], { through })
  const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
  const reload = async (changed: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> => {
    await folder.write('proxy.json', configOf(backend, changed))
    return (await (await fetch(`${admin}/reload`, { method: 'POST' })).json()) as Record<string, unknown>
  }
  return { url, admin, directory: folder.directory, process: running, received: () => received, reload }
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 })

interface Answer {
  readonly status: number
  readonly id: string
}

/** One call; its status and request id. Rejects if the connection is lost. */
function call(url: string, tool: string, id = 1): Promise<Answer> {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: tool, arguments: { note: ARGUMENT, password: `${ARGUMENT}-secret` } },
  })
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}`, 'x-trace': TOKEN }
    const request = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
      const { statusCode: status = 0, headers: got } = response
      response.resume().once('end', () => resolve({ status, id: String(got['x-request-id']) }))
      response.once('error', reject)
    })
    request.once('error', reject).end(body)
  })
}

/** About `perSecond` calls for `seconds`, each third of them refused. */
async function load(url: string, perSecond: number, seconds: number): Promise<Answer[]> {
  const pending: Promise<Answer | undefined>[] = []
  const untilMs = performance.now() + seconds * 1_000
  for (let sent = 0; performance.now() < untilMs;) {
    for (let index = 0; index < perSecond / 50; index++, sent++)
      pending.push(call(`${url}/tools`, sent % 3 === 0 ? 'delete_all' : 'get_it', sent).catch(() => undefined))
    await sleep(20)
  }
  return (await Promise.all(pending)).filter((answer) => answer !== undefined)
}

async function events(...files: readonly string[]): Promise<Event[]> {
  const read = () => Promise.all(files.map((file) => readFile(file, 'utf8')))
  const isWhole = (text: string): boolean => text === '' || text.endsWith('\n')
  let texts = await read()
  // A write may be in progress, or its torn line about to be removed.
  for (let left = 50; left > 0 && !texts.every(isWhole); left--) {
    await sleep(20)
    texts = await read()
  }
  return texts.flatMap((one) => {
    expect(one === '' || one.endsWith('\n')).toBe(true)
    return one
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Event)
  })
}

/** Ids of requests; other events, such as reloads, have none. */
const idsOf = (list: readonly Event[]): string[] =>
  list.map(({ metadata: { extra } }) => extra['requestId']).filter((id) => typeof id === 'string')

function expectEachOnce(list: readonly Event[], answers: readonly Answer[]): void {
  const ids = idsOf(list)
  expect(new Set(ids).size).toBe(ids.length)
  expect(answers.map(({ id }) => id).filter((id) => !ids.includes(id))).toEqual([])
}

async function metric(admin: string, name: string): Promise<number> {
  const page = await (await fetch(`${admin}/metrics`)).text()
  return Number(new RegExp(`^${name} (.+)$`, 'm').exec(page)?.[1])
}

const LONG = 120_000
/** Files of at most 256 KiB: a write beyond fails as on a full disk, in the middle of a line. */
const SMALL_DISK = ['bash', '-c', 'ulimit -f 256; exec "$@"', 'bash']

describe('the audit trail of a process', () => {
  it(
    'has every request and every refusal once, through SIGTERM, without secrets',
    async () => {
      const proxy = await start({ file: './audit.jsonl', includeArguments: true })
      const answers = await load(proxy.url, 500, 3)
      const missing = await fetch(`${proxy.url}/nowhere`, { headers: { authorization: `Bearer ${TOKEN}` } })
      const failed = await call(`${proxy.url}/plain`, 'fails')
      const named = await call(`${proxy.url}/plain`, TOKEN)
      const ambiguous = await fetch(`${proxy.url}/plain`, {
        method: 'POST',
        body: '[]',
        headers: { 'content-type': 'application/json' },
      })
      proxy.process.process.kill('SIGTERM')
      expect(await proxy.process.ended).toBe(0)
      const file = path.join(proxy.directory, 'audit.jsonl')
      expect((await stat(file)).mode & 0o777).toBe(0o600)
      const list = await events(file)
      const all = [...answers, failed, named]
      expectEachOnce(list, all)
      expect(list).toHaveLength(all.length + 2)
      expect(answers.length).toBeGreaterThan(500)
      const byId = new Map(list.map((event) => [event.metadata.extra['requestId'], event]))
      for (const { id, status } of answers)
        expect(byId.get(id)).toMatchObject({
          outcome: status === 200 ? 'success' : 'denied',
          component: 'tools',
          target: { method: 'tools/call', name: status === 200 ? 'get_it' : 'delete_all', endpoint: '/tools' },
          decision: status === 200 ? { allowed: true } : { allowed: false, rule: 'no-deletes' },
          metadata: { extra: { status } },
        })
      expect(byId.get(failed.id)).toMatchObject({
        outcome: 'application_error',
        credential: {
          type: 'headerInjection',
          config: 'default/key',
          source: 'static',
          header: 'x-api-key',
          fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
        },
        data: { arguments: { note: ARGUMENT, password: '[masked]' } },
      })
      expect(byId.get(missing.headers.get('x-request-id'))).toMatchObject({ outcome: 'failure', component: 'proxy' })
      expect(byId.get(ambiguous.headers.get('x-request-id'))).toMatchObject({
        type: 'http_request',
        outcome: 'failure',
        metadata: { extra: { reason: 'bad_request' } },
      })
      expect(byId.get(named.id)?.target['name']).toBe('[masked]')
      const whole = await readFile(file, 'utf8')
      for (const secret of [CREDENTIAL, TOKEN, `${ARGUMENT}-secret`]) expect(whole).not.toContain(secret)
    },
    LONG,
  )

  it('is turned on and looked at as docs/audit-trail.md says', async () => {
    const page = await readFile(path.join(import.meta.dirname, '../../../docs/audit-trail.md'), 'utf8')
    const block = (language: string): string => new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? ''
    const { spec } = parse(block('yaml')) as { spec: { audit: { file: string } } }
    const proxy = await start({ ...spec.audit, file: './audit.jsonl' })
    const { id } = await call(`${proxy.url}/tools`, 'get_it')
    proxy.process.process.kill('SIGTERM')
    await proxy.process.ended
    const command = block('sh').replaceAll(spec.audit.file, path.join(proxy.directory, 'audit.jsonl'))
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', command])
    const event = JSON.parse(stdout) as Event
    const shown = JSON.parse(block('json')) as Event
    expect(event).toMatchObject({ type: shown.type, outcome: shown.outcome, metadata: { extra: { requestId: id } } })
    const fields = (value: object): string[] =>
      Object.entries(value).flatMap(([name, inner]) =>
        typeof inner === 'object' && inner !== null ? fields(inner).map((field) => `${name}.${field}`) : [name],
      )
    const known = fields(shown)
    expect(fields(event).filter((field) => !known.includes(field))).toEqual([])
    expect(fields(event).length).toBeGreaterThan(15)
  })

  it(
    'goes on in a new file after a rotation, with SIGHUP and without',
    async () => {
      const proxy = await start({ file: './audit.jsonl' })
      const file = path.join(proxy.directory, 'audit.jsonl')
      const rotate = async (): Promise<Answer[]> => {
        const answers = load(proxy.url, 500, 3)
        await sleep(600)
        await rename(file, `${file}.1`)
        proxy.process.process.kill('SIGHUP')
        await sleep(600)
        await rename(file, `${file}.2`)
        return answers
      }
      const answers = await rotate()
      proxy.process.process.kill('SIGTERM')
      expect(await proxy.process.ended).toBe(0)
      const parts = [`${file}.1`, `${file}.2`, file]
      for (const part of parts) expect(await events(part)).not.toEqual([])
      expectEachOnce(await events(...parts), answers)
    },
    LONG,
  )

  it(
    'loses at most the unwritten batch by kill -9, and tears no line',
    async () => {
      const proxy = await start({ file: './audit.jsonl' })
      const loaded = load(proxy.url, 500, 2)
      await sleep(1_000)
      const atMs = Date.now()
      proxy.process.process.kill('SIGKILL')
      await proxy.process.ended
      const answers = await loaded
      const list = await events(path.join(proxy.directory, 'audit.jsonl'))
      const ids = new Set(idsOf(list))
      expect(ids.size).toBe(list.length)
      const last = Math.max(...list.map((event) => Date.parse((event as unknown as { loggedAt: string }).loggedAt)))
      expect(atMs - last).toBeLessThan(1_000)
      // A batch waits for 100 ms: at 500 requests per second, about 50 lines.
      expect(answers.filter(({ id }) => !ids.has(id)).length).toBeLessThan(250)
      expect(list.length).toBeGreaterThan(100)
    },
    LONG,
  )

  it(
    'with "block": answers 503 while the disk is full, records every answer, and goes on when there is room',
    async () => {
      const proxy = await start({ file: './audit.jsonl', whenFull: 'block' }, [], SMALL_DISK)
      const file = path.join(proxy.directory, 'audit.jsonl')
      const answers: Answer[] = []
      while (!answers.some(({ status }) => status === 503)) answers.push(...(await load(proxy.url, 500, 0.2)))
      const served = answers.filter(({ status }) => status !== 503)
      // Each answer was written before it was sent.
      expectEachOnce(await events(file), served)
      const before = proxy.received()
      expect((await call(`${proxy.url}/tools`, 'get_it')).status).toBe(503)
      // Nothing reaches the backend without a record of it.
      expect(proxy.received()).toBe(before)
      await rename(file, `${file}.1`)
      proxy.process.process.kill('SIGHUP')
      await expect.poll(async () => (await call(`${proxy.url}/tools`, 'get_it')).status, { timeout: 30_000 }).toBe(200)
      const later = await call(`${proxy.url}/tools`, 'get_it')
      expectEachOnce(await events(`${file}.1`, file), [...served, later])
      expect(proxy.process.stderr()).toContain('audit trail cannot be written')
    },
    LONG,
  )

  it(
    'with "drop": serves on, counts what is lost, and writes whole lines',
    async () => {
      const proxy = await start({ file: './audit.jsonl' }, [], SMALL_DISK)
      const answers: Answer[] = []
      while (answers.length < 1_000) answers.push(...(await load(proxy.url, 500, 0.5)))
      expect(answers.filter(({ status }) => status !== 200 && status !== 403)).toEqual([])
      await expect
        .poll(
          async () =>
            (await metric(proxy.admin, 'extauth_audit_events_total')) +
            (await metric(proxy.admin, 'extauth_audit_events_lost_total')),
          { timeout: 10_000 },
        )
        .toBe(answers.length)
      const list = await events(path.join(proxy.directory, 'audit.jsonl'))
      expect(list).toHaveLength(await metric(proxy.admin, 'extauth_audit_events_total'))
      expect(await metric(proxy.admin, 'extauth_audit_events_lost_total')).toBeGreaterThan(0)
    },
    LONG,
  )

  it.each([[[]], [['--workers', '2']]])('on standard output stands apart from the log, with %j', async (args) => {
    const proxy = await start({ file: 'stdout' }, args)
    const answer = await call(`${proxy.url}/tools`, 'get_it')
    await proxy.process.shows(answer.id)
    const lines = proxy.process
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('{'))
    expect(lines.map((line) => (JSON.parse(line) as Event).type)).toEqual(['mcp_tool_call'])
  })

  it(
    'changes with a reload, and stays where its file cannot be opened',
    async () => {
      const proxy = await start({ file: './one.jsonl', events: ['mcp_tool_call'] })
      const first = await call(`${proxy.url}/tools`, 'get_it')
      expect(await proxy.reload({ file: './two.jsonl', format: 'ocsf' })).toEqual({ reloaded: true })
      const second = await call(`${proxy.url}/tools`, 'get_it')
      const refused = await proxy.reload({ file: './no/such/folder/three.jsonl' })
      expect(refused['reloaded']).toBe(false)
      expect(JSON.stringify(refused['problems'])).toMatch(/spec\.audit .*no\/such\/folder.*ENOENT/)
      const third = await call(`${proxy.url}/tools`, 'get_it')
      expect(await proxy.reload({ file: './two.jsonl', exclude: ['mcp_tool_call'] })).toEqual({ reloaded: true })
      await call(`${proxy.url}/tools`, 'get_it')
      proxy.process.process.kill('SIGTERM')
      expect(await proxy.process.ended).toBe(0)
      expect(idsOf(await events(path.join(proxy.directory, 'one.jsonl')))).toEqual([first.id])
      const two = await events(path.join(proxy.directory, 'two.jsonl'))
      const seen = two.map((line) => {
        const { type, outcome, unmapped, api } = line as unknown as {
          type?: string
          outcome?: string
          unmapped?: { event: string; outcome: string }
          api?: { request: { uid: string } }
        }
        return { type: unmapped?.event ?? type, outcome: unmapped?.outcome ?? outcome, id: api?.request.uid }
      })
      expect(seen.filter(({ type }) => type === 'mcp_tool_call').map(({ id }) => id)).toEqual([second.id, third.id])
      expect(seen.filter(({ type }) => type === 'config_reloaded').map(({ outcome }) => outcome)).toContain('failure')
    },
    LONG,
  )

  it(
    'of several workers has every request once',
    async () => {
      const proxy = await start({ file: './audit.jsonl' }, ['--workers', '2'])
      const answers = await load(proxy.url, 200, 2)
      proxy.process.process.kill('SIGTERM')
      expect(await proxy.process.ended).toBe(0)
      expectEachOnce(await events(path.join(proxy.directory, 'audit.jsonl')), answers)
    },
    LONG,
  )

  it('that cannot be opened ends the start with the place', async () => {
    const started = start({ file: './no/such/folder/audit.jsonl' })
    await expect(started).rejects.toThrow(/audit\.file .*no\/such\/folder.*ENOENT/)
  })
})
