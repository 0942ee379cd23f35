import { afterEach, describe, expect, it } from 'vitest'
import type { AuthenticatedCaller, Caller } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const CALLERS: Readonly<Record<string, Caller>> = {
  alice: createCaller({ subject: 'alice' }),
  // Another token of the same person.
  alice2: createCaller({ subject: 'alice', token: 'second-token' }),
  bob: createCaller({ subject: 'bob' }),
  // Another provider also has an alice.
  other: createCaller({ subject: 'alice', issuer: 'https://other.example' }),
  nameless: createCaller({ subject: '', token: 'one' }),
  nameless2: createCaller({ subject: '', token: 'two' }),
  // Users of one client without sub: by the session at the issuer, by the name in an introspection answer, by neither.
  ada: createCaller({ subject: '', token: 'three', claims: { client_id: 'app', sid: 's1' } }),
  adaAgain: createCaller({ subject: '', token: 'four', claims: { azp: 'app', sid: 's1' } }),
  eve: createCaller({ subject: '', token: 'five', claims: { client_id: 'app', sid: 's2' } }),
  adaElsewhere: createCaller({ subject: '', token: 'six', claims: { client_id: 'other', sid: 's1' } }),
  carol: createCaller({
    subject: '',
    token: 'seven',
    format: 'opaque',
    claims: { client_id: 'app', username: 'carol' },
  }),
  carolAgain: createCaller({
    subject: '',
    token: 'eight',
    format: 'opaque',
    claims: { client_id: 'app', username: 'carol' },
  }),
  dave: createCaller({ subject: '', token: 'nine', format: 'opaque', claims: { client_id: 'app', username: 'dave' } }),
  job: createCaller({ subject: '', token: 'ten', claims: { client_id: 'app' } }),
  otherJob: createCaller({ subject: '', token: 'eleven', claims: { client_id: 'app' } }),
  anonymous: { kind: 'anonymous' },
}

/** Two protected routes and an open one to a backend that gives `s-1` and records the ids it is shown. */
async function start() {
  const shown: (string | undefined)[] = []
  const origin = await sockets.http((request, response) => {
    shown.push(request.headers['mcp-session-id'] as string | undefined)
    response.writeHead(200, { 'mcp-session-id': 's-1' }).end()
  })
  const caller = (matched: { authorization: readonly string[] }): Caller =>
    CALLERS[matched.authorization[0] ?? ''] ?? { kind: 'anonymous' }
  const routes = ['a', 'b'].map((name) =>
    createRoute(sockets, origin, { name, path: `/${name}`, isProtected: true, caller }),
  )
  const open = createRoute(sockets, origin, { name: 'open', path: '/open', caller })
  const proxy = await startProxy(sockets, runtimeOf([...routes, open]))
  const send = async (path: string, who: string, session?: string) => {
    const headers = { authorization: who, ...(session === undefined ? {} : { 'mcp-session-id': session }) }
    const response = await fetch(`${proxy.url}${path}`, { method: 'POST', headers, body: '{}' })
    return {
      status: response.status,
      session: response.headers.get('mcp-session-id') ?? '',
      body: await response.text(),
    }
  }
  return { send, shown, proxy }
}

describe('sessions', () => {
  it('the id that a caller sees works for that caller, also with another token', async () => {
    const { send, shown } = await start()
    const { session } = await send('/a', 'alice')
    expect(session).toMatch(/^s-1\.[\w-]{43}$/)
    expect((await send('/a', 'alice', session)).status).toBe(200)
    expect((await send('/a', 'alice', session)).session).toBe(session)
    expect((await send('/a', 'alice2', session)).status).toBe(200)
    expect(shown).toEqual([undefined, 's-1', 's-1', 's-1'])
  })

  it.each(['bob', 'other', 'nameless', 'anonymous'])('%s who presents it gets 404', async (who) => {
    const { send, shown } = await start()
    const { session } = await send('/a', 'alice')
    const { status, body } = await send('/a', who, session)
    expect(status).toBe(404)
    expect(body).toContain('"reason":"unknown_session"')
    expect(shown).toHaveLength(1)
  })

  it('works on its own route only', async () => {
    const { send } = await start()
    const { session } = await send('/a', 'alice')
    expect((await send('/b', 'alice', session)).status).toBe(404)
    expect((await send('/a', 'alice', session)).status).toBe(200)
    expect((await send('/b', 'alice', session)).status).toBe(404)
  })

  it('an ending of one session does not fit another', async () => {
    const { send } = await start()
    const { session } = await send('/a', 'alice')
    expect((await send('/a', 'alice', session.replace('s-1', 's-2'))).status).toBe(404)
  })

  it.each(['s-1', 's-1.', '.', '', 's-1.x', `s-1.${'A'.repeat(43)}`])('%j gets 404', async (session) => {
    const { send, shown } = await start()
    expect((await send('/a', 'alice', session)).status).toBe(404)
    expect(shown).toEqual([])
  })

  it('a token without a subject stands for itself', async () => {
    const { send } = await start()
    const { session } = await send('/a', 'nameless')
    expect((await send('/a', 'nameless', session)).status).toBe(200)
    expect((await send('/a', 'nameless2', session)).status).toBe(404)
  })

  it.each([
    ['ada', 'adaAgain', ['eve', 'adaElsewhere', 'carol', 'job']],
    ['carol', 'carolAgain', ['dave', 'ada', 'job']],
    ['job', 'job', ['otherJob', 'ada', 'carol', 'nameless']],
  ])('without a subject %s is not another user of the client', async (who, again, others) => {
    const { send } = await start()
    const { session } = await send('/a', who)
    expect((await send('/a', again, session)).status).toBe(200)
    for (const other of others) expect([other, (await send('/a', other, session)).status]).toEqual([other, 404])
  })

  it('ids on open routes are left alone', async () => {
    const { send, shown } = await start()
    expect((await send('/open', 'alice', 'any.thing')).session).toBe('s-1')
    expect(shown).toEqual(['any.thing'])
  })

  it('two session ids are ambiguous', async () => {
    const { proxy } = await start()
    const { session } = await (await start()).send('/a', 'alice')
    const { rawConnect } = await import('../../support/raw.ts')
    const line = `Mcp-Session-Id: ${session}\r\n`
    const client = rawConnect(
      proxy.url,
      `GET /a HTTP/1.1\r\nHost: localhost\r\nAuthorization: alice\r\n${line}${line}\r\n`,
    )
    expect(await client.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 400 /)
  })

  it('nothing of it is written down', async () => {
    const { send, proxy } = await start()
    const { session } = await send('/a', 'alice')
    await send('/a', 'bob', session)
    const written = proxy.log.lines.join('\n') + proxy.metrics.text()
    expect(written).not.toContain('s-1')
    expect(written).not.toContain((CALLERS['alice'] as AuthenticatedCaller).subject)
  })
})
