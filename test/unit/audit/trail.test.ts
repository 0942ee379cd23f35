import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { createAuditTrail } from '../../../src/audit/index.ts'
import { createAuthorizer, createProtocolMemory } from '../../../src/authorize/index.ts'
import { Failure, type Known, Secret } from '../../../src/core/index.ts'
import { authorization } from '../../../src/resources/authorization.ts'
import { audit } from '../../../src/resources/index.ts'
import { callerWith } from '../../support/authorize/ruled.ts'
import { createManualClock, createRecordingLog, createRecordingMetrics } from '../../support/ports.ts'
import { createRoute, headerCredential, runtimeOf, startProxy } from '../../support/proxy/harness.ts'
import { createSockets } from '../../support/sockets.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'extauth-audit-'))
afterAll(() => rmSync(directory, { recursive: true }))
const sockets = createSockets()
afterEach(() => sockets.closeAll())

interface Event {
  readonly outcome: string
  readonly subjects: Readonly<Record<string, string>>
  readonly target: Readonly<Record<string, string>>
  readonly credential?: { readonly fingerprint: string }
  readonly decision?: { readonly allowed: boolean }
  readonly metadata: { readonly extra: Readonly<Record<string, unknown>> }
}

let files = 0
const segment = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
/** Unverified: nothing here has its key. */
const TOKEN = `${segment({ alg: 'RS256' })}.${segment({ sub: 'mallory', name: 'Mallory', client_id: 'evil' })}.c2lnbmF0dXJl`

/** A proxy that keeps a trail; callers of `bad` tokens are refused, rules refuse `delete_*`. */
async function start({
  file = `trail-${files++}.jsonl`,
  key = 'k'.repeat(32),
  ...more
}: Partial<{ file: string; key: string; whenFull: 'block' }> = {}) {
  const target = path.resolve(directory, file)
  const metrics = createRecordingMetrics()
  const trail = createAuditTrail({
    clock: createManualClock(),
    log: createRecordingLog(),
    metrics,
    version: '1',
    roleOf: () => undefined,
    ephemeralKey: new Secret('e'.repeat(32)),
    waitMs: 50,
  })
  trail.prepare(audit().parse({ file: target, ...more }), () => new Secret(key)).activate()
  let received = 0
  const origin = await sockets.http((request, response) => {
    received += 1
    request.resume()
    response.setHeader('content-type', 'application/json').end('{"jsonrpc":"2.0","id":7,"result":{}}')
  })
  const authorize = createAuthorizer({
    route: 'r',
    authorization: authorization().parse({
      default: 'allow',
      rules: [{ name: 'no-deletes', tools: ['delete_*'], effect: 'deny' }],
    }),
    limitBytes: 1024 * 1024,
    metrics,
    memory: createProtocolMemory().of('r', origin),
  })
  const route = createRoute(sockets, origin, {
    authorize,
    ownedHeaders: ['x-api-key'],
    credential: () => headerCredential('x-api-key', 'secret-of-the-backend'),
    caller({ inbound }) {
      if (inbound.request.headers['x-bad'] !== undefined) throw new Failure('invalid_token')
      return callerWith({ sub: 'u-1', name: 'Ada' })
    },
  })
  const { obtain } = route
  const config = { type: 'headerInjection', config: 'default/key', configHash: '0123456789abcdef' } as const
  const withConfig = {
    ...obtain,
    obtain: async (known: Known) => Object.assign(await obtain.obtain(known), { config }),
  }
  const proxy = await startProxy(
    sockets,
    runtimeOf([{ ...route, obtain: withConfig }]),
    {},
    { observer: trail.observer },
  )
  return {
    received: () => received,
    metrics,
    call: async (name: string, headers: Record<string, string> = {}) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: {} } })
      const response = await fetch(proxy.url, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}`, ...headers },
      })
      await response.bytes()
      return response.status
    },
    events: async (): Promise<Event[]> => {
      await trail.close()
      const lines = readFileSync(target, 'utf8').trimEnd().split('\n')
      return lines.map((line) => JSON.parse(line) as Event)
    },
  }
}

describe('events of requests', () => {
  it('name who the verified token is of, and what the rules decided', async () => {
    const { call, events } = await start()
    expect([await call('get_a'), await call('delete_a')]).toEqual([200, 403])
    expect(await events()).toMatchObject([
      { outcome: 'success', subjects: { user: 'Ada', user_id: 'u-1' }, decision: { allowed: true } },
      { outcome: 'denied', subjects: { user_id: 'u-1' }, decision: { allowed: false, rule: 'no-deletes' } },
    ])
  })

  it('name nobody where no token was verified, whatever the token says of itself', async () => {
    const { call, events } = await start()
    expect(await call('get_a', { 'x-bad': '1' })).toBe(401)
    const [event] = await events()
    expect(event).toMatchObject({ outcome: 'denied', subjects: {}, metadata: { extra: { status: 401 } } })
    expect(JSON.stringify(event)).not.toMatch(/mallory|evil/i)
  })

  it('mask tokens that clients send as names', async () => {
    const { call, events } = await start()
    await call(TOKEN)
    expect((await events())[0]?.target['name']).toBe('[masked]')
  })

  it('count the refusals of an address after the first ten', async () => {
    const { call, events } = await start()
    for (let time = 0; time < 14; time++) await call('get_a', { 'x-bad': '1' })
    const list = await events()
    expect(list).toHaveLength(11)
    expect(list.at(-1)).toMatchObject({ metadata: { extra: { status: 401, repeated: 4 } } })
  })

  it('have fingerprints that only the key compares', async () => {
    const fingerprintWith = async (key: string): Promise<string | undefined> => {
      const { call, events } = await start({ key })
      await call('get_a')
      return (await events())[0]?.credential?.fingerprint
    }
    const [one, same, other] = [
      await fingerprintWith('a'.repeat(32)),
      await fingerprintWith('a'.repeat(32)),
      await fingerprintWith('b'.repeat(32)),
    ]
    expect(one).toMatch(/^[0-9a-f]{16}$/)
    expect(same).toBe(one)
    expect(other).not.toBe(one)
    await expect(start({ key: 'c'.repeat(31) })).rejects.toMatchObject({ code: 'config_error' })
  })

  it('follow the lines of a process that was killed while it wrote one', async () => {
    writeFileSync(path.join(directory, 'torn.jsonl'), '{"whole":1}\n{"to')
    const { call, events } = await start({ file: 'torn.jsonl' })
    await call('get_a')
    expect(await events()).toMatchObject([{ whole: 1 }, { outcome: 'success' }])
  })
})

describe('a full disk', () => {
  it('with "block" refuses with 503, before and after the request reaches the backend', async () => {
    const { call, received } = await start({ file: '/dev/full', whenFull: 'block' })
    expect(await call('get_a')).toBe(503)
    const reached = received()
    expect(await call('get_a')).toBe(503)
    expect(received()).toBe(reached)
  })

  it('with "drop" serves on and counts what is lost', async () => {
    const { call, metrics } = await start({ file: '/dev/full' })
    expect(await call('get_a')).toBe(200)
    await expect.poll(() => metrics.value('extauth_audit_events_lost_total')).toBe(1)
  })
})
