import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { authConfig, proxyConfig, run } from '../../support/e2e/run.ts'
import { createRoute, type RouteOptions, runtimeOf, startProxy } from '../../support/proxy/harness.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const MIB = 1024 * 1024

/** A proxy whose log reports why a request ended. */
interface Subject {
  readonly url: string
  readonly log: { readonly lines: readonly string[] }
  /** The inspector's view of a request. */
  readonly onPage?: (requestId: string) => Promise<unknown>
  readonly passTime?: () => void
  readonly close?: () => Promise<void>
}

/** The real proxy with one route and the inspector. */
async function configured(route: object, spec: object = {}): Promise<Subject> {
  const proxy = await run({
    'auth.json': authConfig('a', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      admin: { inspector: 'heads' },
      routes: [{ name: 'r', path: '/', externalAuthConfigRef: { name: 'a' }, ...route }],
      ...spec,
    }),
  })
  sockets.closing(proxy)
  const onPage = async (requestId: string) => {
    const answer = await fetch(`${proxy.adminUrl}/inspect/api/requests/${requestId}`)
    return ((await answer.json()) as { why?: unknown }).why
  }
  return { ...proxy, onPage }
}

interface FixedOptions {
  readonly deadlines?: object
  readonly route?: RouteOptions
  readonly backend?: Parameters<typeof sockets.http>[0]
  readonly listen?: object
}

/** The proxy with limits that have no setting, or are too large to reach with it; its clock is the test's. */
async function fixed({ deadlines = {}, route = {}, backend = drop, listen = {} }: FixedOptions): Promise<Subject> {
  const origin = await sockets.http(backend)
  const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin, route)]), listen, { deadlines })
  return { ...proxy, passTime: () => proxy.clock.advance(5000) }
}

const drop: NonNullable<FixedOptions['backend']> = (request) => void request.resume().on('error', () => undefined)
const silent = (): Promise<string> => sockets.http(() => undefined)
const withoutTls = async () => (await sockets.tcp(() => undefined)).replace('http:', 'https:')
const serving = (): Promise<string> => sockets.http((_request, response) => response.end('served'))
/** Sends one event. */
const stalling = (): Promise<string> =>
  sockets.http((_request, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n')
  })

const get = (lines = '') => `GET / HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`
const post = (lines: string, body = '') => `POST / HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n\r\n${body}`
const ofLength = (bytes: number, body = '') => post(`Content-Length: ${bytes}`, body)

/** Sends this and returns all that is received until the connection is closed. */
const received =
  (text: string) =>
  async ({ url }: Subject): Promise<string> => {
    const startedAt = performance.now()
    const client = rawConnect(url, text)
    await client.ended
    // Far from the defaults.
    expect(performance.now() - startedAt).toBeLessThan(8000)
    return client.text()
  }
/** Only sends this. */
const sent =
  (text: string) =>
  ({ url }: Subject): string => {
    rawConnect(url, text)
    return ''
  }
/** Headers of `below` bytes are served, those of `above` are not. */
const headers = (below: number, above: number) => async (subject: Subject) => {
  const close = 'Connection: close\r\n'
  expect(await received(get(`${close}X: ${'x'.repeat(below)}\r\n`))(subject)).toMatch(/^HTTP\/1\.1 200 .*served/s)
  const client = rawConnect(subject.url, get(`X: ${'x'.repeat(above)}\r\n`))
  const text = await client.until(/\}\}\}/)
  client.socket.destroy()
  return text
}

interface Limit {
  readonly setting: string
  readonly start: () => Promise<Subject>
  /** Reaches the limit and returns what the client receives. */
  readonly reach: (subject: Subject) => Promise<string> | string
  readonly answer?: RegExp
  readonly why: RegExp | string
  readonly remedy?: RegExp
  readonly isOnPage?: true
}

const LIMITS: readonly Limit[] = [
  {
    setting: 'timeouts.connect of a route: a backend whose TLS handshake does not end is 502',
    start: async () => configured({ target: await withoutTls(), timeouts: { connect: '200ms' } }),
    reach: received(get('Connection: close\r\n')),
    answer: /^HTTP\/1\.1 502 .*"reason":"backend_unreachable"/s,
    why: /^the connection attempt timed out: https:\S+ \(UND_ERR_CONNECT_TIMEOUT\); the limit is 200 ms \(timeouts\.connect of the route\)$/,
    remedy: /Raise timeouts\.connect of the route if that is expected\.$/,
    isOnPage: true,
  },
  {
    setting: 'timeouts.firstByte of a route: a silent backend is 504',
    start: async () => configured({ target: await silent(), timeouts: { firstByte: '200ms' } }),
    reach: received(get('Connection: close\r\n')),
    answer: /^HTTP\/1\.1 504 .*"reason":"backend_timeout"/s,
    why: /no response in time: .*; the limit is 200 ms \(timeouts\.firstByte of the route\)$/,
    remedy: /Raise timeouts\.firstByte/,
    isOnPage: true,
  },
  {
    setting: 'timeouts.idle of a route: a stream that stalls is aborted',
    start: async () => configured({ target: await stalling(), timeouts: { idle: '200ms' } }),
    reach: received(get()),
    answer: /data: one(?!.*\r\n0\r\n\r\n$)/s,
    why: /the response stalled: .*; the limit is 200 ms \(timeouts\.idle of the route\)$/,
    isOnPage: true,
  },
  {
    setting: 'listen.headerLimit: larger headers are 431',
    start: async () => configured({ target: await serving() }, { listen: { headerLimit: '4Ki' } }),
    reach: headers(3000, 5000),
    answer: /^HTTP\/1\.1 431 /,
    why: /; the limit is 4 KiB \(listen\.headerLimit of the ProxyConfig\)$/,
    remedy: /listen\.headerLimit/,
  },
  {
    setting: 'listen.headerLimit by default: larger headers are 431',
    start: async () => configured({ target: await serving() }),
    reach: headers(15_000, 17_000),
    answer: /^HTTP\/1\.1 431 /,
    why: /; the limit is 16 KiB \(listen\.headerLimit of the ProxyConfig\)$/,
  },
  {
    setting: 'limits.bufferedBody of a route that needs the body: a larger one is rejected',
    start: () => fixed({ route: { needsBody: true, limits: { bufferedBody: 2048 } } }),
    reach: sent(ofLength(3000)),
    why: 'the body must be kept and is too large; the limit is 2 KiB (limits.bufferedBody of the route)',
  },
  {
    setting: 'listen.bufferedBodiesLimit: bodies beyond it are rejected',
    start: () => fixed({ route: { needsBody: true }, listen: { bufferedBodiesBytes: 1024 } }),
    async reach({ url, log }) {
      rawConnect(url, ofLength(1000, 'x'))
      await vi.waitFor(() => expect(log.lines).toEqual([]))
      for (let count = 0; count < 2; count++) rawConnect(url, ofLength(1000, 'x'.repeat(999)))
      return ''
    },
    why: /; the limit is 1 KiB \(listen\.bufferedBodiesLimit of the ProxyConfig\)$/,
  },
  {
    setting: 'fixed: the time for a body that is kept',
    start: () => fixed({ deadlines: { keptBodyMs: 5000 } }),
    reach: sent(ofLength(5, 'ab')),
    why: 'the body did not arrive in time; the limit is 5 s (fixed)',
  },
  {
    setting: 'fixed: the pause within a body that is streamed',
    start: () => fixed({ deadlines: { bodyIdleMs: 7000 } }),
    reach: sent(post('Transfer-Encoding: chunked', '3\r\nabc\r\n')),
    why: 'the body stalled; the limit is 7 s (fixed)',
  },
  {
    setting: 'fixed: the time for a header section, after which the connection is refused',
    start: () => fixed({ deadlines: { headersMs: 100 } }),
    async reach({ url, log }) {
      rawConnect(url, 'POST / HTTP/1.1\r\nHost: loc')
      await vi.waitFor(() => expect(log.lines.join('\n')).toContain('connection refused'), 10_000)
      return ''
    },
    why: /; the limit is 100 ms \(fixed\)$/,
  },
  {
    setting: 'fixed: the rate at which a client must read its response',
    start: () => fixed({ deadlines: { unreadAnswerMs: 60_000 }, backend: sendMuch }),
    reach({ url }) {
      rawConnect(url, get()).socket.pause()
      return ''
    },
    why: 'the client reads its response at less than 240 bytes a second; the limit is 60 s (fixed)',
  },
  {
    setting: 'the drain period: responses in flight are aborted after it',
    start: async () => configured({ target: await stalling() }),
    async reach({ url, close }) {
      const client = rawConnect(url, ofLength(2, '{}'))
      await client.until(/data: one/)
      await close?.()
      return ''
    },
    why: /^the proxy stopped before the response was complete; the limit is 500 ms \(fixed\)$/,
  },
]

function sendMuch(_request: unknown, response: ServerResponse): void {
  response.writeHead(200, { 'content-length': 64 * MIB })
  for (let piece = 0; piece < 64; piece++) response.write(Buffer.alloc(MIB, 'x'))
}

/** The logged end of a request; the clock runs until then. */
async function endOf({ log, passTime }: Subject) {
  const timer = setInterval(() => passTime?.(), 50)
  try {
    return await vi.waitFor(
      () => {
        const line = log.lines.find((one) => one.includes('"why"'))
        const of = (name: string) => new RegExp(`"${name}":("[^"]*")`).exec(line ?? '')?.[1]
        const why = of('why')
        if (why === undefined) throw new Error(log.lines.join('\n'))
        const [remedy = '""', requestId = '""'] = [of('remedy'), of('requestId')]
        return {
          why: JSON.parse(why) as string,
          remedy: JSON.parse(remedy) as string,
          requestId: JSON.parse(requestId) as string,
        }
      },
      { timeout: 15_000, interval: 50 },
    )
  } finally {
    clearInterval(timer)
  }
}

describe('a limit has its effect, and the log and the inspector name it with its value and its setting:', () => {
  it.each(LIMITS)('$setting', async ({ start, reach, answer = /^/, why, remedy = /^/, isOnPage }) => {
    const subject = await start()
    expect(await reach(subject)).toMatch(answer)
    const end = await endOf(subject)
    if (typeof why === 'string') expect(end.why).toBe(why)
    else expect(end.why).toMatch(why)
    expect(end.remedy).toMatch(remedy)
    if (isOnPage === true)
      expect(await subject.onPage?.(end.requestId)).toMatchObject({ cause: end.why, remedy: end.remedy })
  })

  it('timeouts.idle of a route is unlimited by default', async () => {
    const target = await stalling()
    const subject = await configured({ target, timeouts: {} })
    const client = rawConnect(subject.url, get())
    await client.until(/data: one/)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(client.socket.destroyed).toBe(false)
    client.socket.destroy()
  })
})
