import { Readable } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { Channel } from '../../../src/bridge/channel.ts'
import { Flight, Flights } from '../../../src/bridge/flights.ts'
import { headerText, ToolParameters } from '../../../src/mcp/headers.ts'
import type { Request } from '../../../src/mcp/message.ts'
import { Session } from '../../../src/bridge/session.ts'
import { ReplayedRequests } from '../../../src/bridge/replayed-requests.ts'
import { type EndpointCredentials, type EndpointRequest, Secret } from '../../../src/core/index.ts'

const request = (id: number | string, method = 'tools/list', params: Record<string, unknown> = {}): Request => ({
  kind: 'request',
  bytes: Buffer.from('{}'),
  id,
  method,
  params,
})

describe('a way to the server', () => {
  /** A server that answers in turn, the last one over and over, and a source of tokens. */
  function rig(...answers: readonly (readonly [status: number, challenge?: string])[]) {
    const sent: (string | undefined)[] = []
    const refused: [string | undefined, string | undefined, boolean][] = []
    let tokens = 0
    const credentials: EndpointCredentials = {
      current: () => Promise.resolve(new Secret(`t${++tokens}`)),
      refused: (used, challenge, mayAsk) => {
        refused.push([used?.reveal(), challenge, mayAsk])
        return Promise.resolve(true)
      },
    }
    const send = ({ headers }: EndpointRequest) => {
      sent.push(headers['authorization'])
      const [status = 200, challenge] = answers[Math.min(sent.length, answers.length) - 1] ?? []
      const found = challenge === undefined ? {} : { 'www-authenticate': challenge }
      return Promise.resolve({ status, headers: found, body: Readable.from([]) })
    }
    const channel = new Channel({ send, close: () => Promise.resolve() }, credentials)
    const ask = (method: 'GET' | 'POST' = 'POST', signal = new AbortController().signal) =>
      channel.send({ method, headers: { accept: 'x' }, signal })
    return { sent, refused, ask, credentials }
  }

  it('has the token of its moment, and another when that one is refused', async () => {
    const { sent, refused, ask } = rig([401, 'Bearer error="invalid_token"'], [200])
    expect((await ask()).status).toBe(200)
    expect(sent).toEqual(['Bearer t1', 'Bearer t2'])
    expect(refused).toEqual([['t1', 'Bearer error="invalid_token"', true]])
  })

  it('asks twice for another token, and then gives the refusal', async () => {
    const { sent, refused, ask } = rig([401])
    expect((await ask()).status).toBe(401)
    expect([sent.length, refused.length]).toEqual([3, 2])
  })

  it('asks for more scopes where they lack, and for nothing after any other 403', async () => {
    const lacks = rig([403, 'Bearer error="insufficient_scope", scope="a"'], [200])
    expect((await lacks.ask()).status).toBe(200)
    expect(lacks.refused).toHaveLength(1)
    const other = rig([403, 'Bearer error="access_denied"'])
    expect((await other.ask()).status).toBe(403)
    expect(other.refused).toEqual([])
  })

  it('starts no login for a background stream', async () => {
    const { refused, ask } = rig([401], [200])
    await ask('GET')
    expect(refused.map(([, , mayAsk]) => mayAsk)).toEqual([false])
  })

  it('sends nothing more for who has gone meanwhile', async () => {
    const ends = new AbortController()
    const { sent, ask, credentials } = rig([401], [200])
    vi.spyOn(credentials, 'refused').mockImplementation(() => {
      ends.abort(new Error('gone'))
      return Promise.resolve(true)
    })
    await expect(ask('POST', ends.signal)).rejects.toThrow('gone')
    expect(sent).toHaveLength(1)
  })
})

describe('requests without an answer', () => {
  it('have ids of their own, and a number that is enough', () => {
    const flights = new Flights()
    const add = (id: number | string) => flights.add(new Flight(request(id), undefined))
    expect([add(1), add('1'), add(1)]).toEqual(['added', 'added', 'in_use'])
    for (let id = 2; id < 20_256; id++) add(id)
    expect([flights.all().length, add('more')]).toEqual([20_256, 'too_many'])
  })

  it('run 256 at a time; a finished one frees a slot, and a subscription takes none', async () => {
    const flights = new Flights()
    const turn = (method?: string) => flights.turn(new Flight(request(0, method), undefined))
    const ends = await Promise.all(Array.from({ length: 256 }, () => turn()))
    const begun: string[] = []
    const [one, two] = ['one', 'two'].map(async (name) => {
      const end = await turn()
      begun.push(name)
      return end
    })
    await turn('subscriptions/listen')
    expect(begun).toEqual([])
    ends[0]?.()
    ;(await one)?.()
    await two
    expect(begun).toEqual(['one', 'two'])
  })

  it('are waited for at the end, subscriptions are not', async () => {
    const flights = new Flights()
    const flight = new Flight(request(1), undefined)
    flights.add(new Flight(request(2, 'subscriptions/listen'), '2026-07-28'))
    await flights.quiet(60_000)
    flights.add(flight)
    const quiet = flights.quiet(60_000).then(() => 'quiet')
    expect(await Promise.race([quiet, new Promise((resolve) => setImmediate(resolve, 'busy'))])).toBe('busy')
    flights.remove(flight)
    expect(await quiet).toBe('quiet')
  })
})

describe('a session', () => {
  const RESULT = { protocolVersion: '2025-11-25' }
  const begin = (session: Session, headers: Record<string, string>, result: unknown = RESULT, isAnew = false): void =>
    session.establish(request(0, 'initialize'), { headers }, result, isAnew)

  it('has its id and revision on each request', () => {
    const session = new Session()
    expect(session.headers()).toEqual({})
    begin(session, { 'mcp-session-id': 's' })
    expect(session.headers()).toEqual({ 'mcp-protocol-version': '2025-11-25', 'mcp-session-id': 's' })
    expect(session.number).toBe(1)
  })

  it.each<[string, Record<string, string>, unknown, string]>([
    ['an id with a space', { 'mcp-session-id': 'a b' }, RESULT, 'session id'],
    ['an id that is huge', { 'mcp-session-id': 'x'.repeat(2049) }, RESULT, 'session id'],
    ['no revision', {}, {}, 'protocolVersion'],
    ['a revision that is no header', {}, { protocolVersion: 'a\r\nb: c' }, 'protocolVersion'],
  ])('does not begin with %s', (_what, headers, result, says) => {
    const session = new Session()
    expect(() => begin(session, headers, result)).toThrow(says)
    expect(session.current).toBeUndefined()
  })

  it('that is renewed keeps the revision that the client knows', () => {
    const session = new Session()
    begin(session, {})
    expect(() => begin(session, {}, { protocolVersion: '2025-06-18' }, true)).toThrow('different protocol revision')
    begin(session, {}, RESULT, true)
    expect(session.number).toBe(2)
  })

  it('is asked again for active subscriptions, up to a thousand', () => {
    const standing = new ReplayedRequests()
    const note = (method: string, params: Record<string, unknown> = {}) => standing.note(request(1, method, params))
    note('logging/setLevel', { level: 'info' })
    note('resources/subscribe', { uri: 'a' })
    note('resources/subscribe', { uri: 'b' })
    note('resources/unsubscribe', { uri: 'a' })
    expect(standing.list().map(({ params }) => params)).toEqual([{ level: 'info' }, { uri: 'b' }])
    for (let n = 0; n < 2000; n++) note('resources/subscribe', { uri: String(n) })
    expect(standing.list()).toHaveLength(1001)
    note('initialize')
    expect(standing.list()).toEqual([])
  })
})

describe('headers of tools', () => {
  it('are plain text, or marked', () => {
    const marked = (text: string): string => `=?base64?${Buffer.from(text).toString('base64')}?=`
    expect(['a b', 'ü', ' a', 'a\nb', '=?base64?eA==?='].map(headerText)).toEqual([
      'a b',
      ...['ü', ' a', 'a\nb', '=?base64?eA==?='].map(marked),
    ])
  })

  it('are what a tool declares, of own members, each once, in a name that can be one', () => {
    const tools = new ToolParameters()
    const learn = (properties: object) => tools.learn({ tools: [{ name: 't', inputSchema: { properties } }] })
    const headersOf = (given: object) => tools.headers({ name: 't', arguments: given })
    const text = (name: string) => ({ type: 'string', 'x-mcp-header': name })
    learn({
      a: text('Region'),
      b: { properties: { c: { type: 'integer', 'x-mcp-header': 'Count' } } },
      toString: text('X'),
    })
    expect(headersOf({ a: 'eu', b: { c: 3 } })).toEqual({ 'mcp-param-region': 'eu', 'mcp-param-count': '3' })
    learn({ a: text('Same'), b: text('same') })
    expect(headersOf({ a: '1', b: '2' })).toEqual({})
    learn({ a: text('Bad Name\r\nX: y') })
    expect(headersOf({ a: '1' })).toEqual({})
  })
})
