import { afterEach, describe, expect, it, vi } from 'vitest'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { NO_CREDENTIAL } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, headerCredential, runtimeOf, startProxy, type RouteOptions } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

interface Seen {
  readonly path: string | undefined
  readonly credential: string | undefined
  readonly body: string
}

type Answer = (response: ServerResponse, request: IncomingMessage, nth: number) => void

/** A proxy before a backend that gives these answers; credentials are numbered `c1`, `c2`, … */
async function start(answer: Answer, options: RouteOptions = {}) {
  const seen: Seen[] = []
  const origin = await sockets.http((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      seen.push({ path: request.url, credential: request.headers['x-key'] as string | undefined, body })
      answer(response, request, seen.length)
    })
  })
  let number = 0
  const reject = vi.fn<NonNullable<RouteOptions['reject']>>(() => true)
  const route = createRoute(sockets, origin, {
    type: 'tokenExchange',
    ownedHeaders: ['x-key'],
    credential: () => headerCredential('x-key', `c${++number}`),
    reject,
    ...options,
  })
  const proxy = await startProxy(sockets, runtimeOf([route]))
  return { proxy, seen, reject, url: proxy.url }
}

const post = (url: string, body: string | ReadableStream = '{"a":1}', more: object = {}) =>
  fetch(url, { method: 'POST', body, redirect: 'manual', ...more })
const reasonOf = async (response: Response): Promise<unknown> => {
  const body = (await response.json()) as { error: { data: { reason: string } } }
  return body.error.data.reason
}
const streamOf = (text: string) => ({
  body: new Blob([text]).stream(),
  init: { duplex: 'half' },
})

describe('a backend that wants a credential', () => {
  it('on a route that sends none is a matter of its configuration', async () => {
    const { url } = await start((response) => response.writeHead(401).end('who are you?'), {
      type: 'unauthenticated',
      credential: () => NO_CREDENTIAL,
      reject: () => false,
    })
    const response = await post(url)
    expect([response.status, await reasonOf(response)]).toEqual([502, 'backend_wants_credential'])
  })
})

describe('repeats', () => {
  it('obtains, applies and sends once more after a 401, with the same body', async () => {
    const { url, seen, reject } = await start((response, _, nth) => response.writeHead(nth === 1 ? 401 : 200).end('ok'))
    const response = await post(url)
    expect([response.status, await response.text()]).toEqual([200, 'ok'])
    expect(seen).toEqual([
      { path: '/', credential: 'c1', body: '{"a":1}' },
      { path: '/', credential: 'c2', body: '{"a":1}' },
    ])
    expect(reject).toHaveBeenCalledTimes(1)
  })

  it('gives up after the second 401 with 502 and no challenge', async () => {
    const { url, seen } = await start((response) => response.writeHead(401, { 'www-authenticate': 'Bearer' }).end())
    const response = await post(url)
    expect([response.status, await reasonOf(response)]).toEqual([502, 'backend_rejected_credential'])
    expect(response.headers.get('www-authenticate')).toBeNull()
    expect(seen).toHaveLength(2)
  })

  it('asks for a login after the second 401 where a login helps, without throwing away the new credential', async () => {
    const { url, seen, reject } = await start((response) => response.writeHead(401).end(), {
      whenRejected: 'no_session',
      isProtected: true,
      resourceUrl: 'https://mcp.example.com/r',
    })
    const response = await post(url)
    expect([response.status, await reasonOf(response)]).toEqual([401, 'no_session'])
    expect(response.headers.get('www-authenticate')).toContain('Bearer')
    expect(seen).toHaveLength(2)
    expect(reject).toHaveBeenCalledTimes(1)
  })

  it('does not repeat when there is no other credential', async () => {
    const { url, seen, reject } = await start((response) => response.writeHead(401).end(), {})
    reject.mockReturnValue(false)
    expect((await post(url)).status).toBe(502)
    expect(seen).toHaveLength(1)
  })

  it('does not repeat what it has not kept, but the credential is dropped for the next', async () => {
    const { url, seen, reject } = await start((response) => response.writeHead(401).end())
    const { body, init } = streamOf('streamed'.repeat(200_000))
    const response = await post(url, body, init)
    expect([response.status, await reasonOf(response)]).toEqual([502, 'backend_rejected_credential'])
    expect(seen).toHaveLength(1)
    expect(reject).toHaveBeenCalledTimes(1)
  })

  it('answers 401 with our challenge where a login helps', async () => {
    const { url } = await start((response) => response.writeHead(401).end(), {
      whenRejected: 'no_session',
      isProtected: true,
      resourceUrl: 'https://mcp.example.com/x',
      caller: () => createCaller(),
      reject: () => false,
    })
    const response = await post(url)
    expect([response.status, await reasonOf(response)]).toEqual([401, 'no_session'])
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="mcp", error="invalid_token", ' +
        'error_description="This caller has no upstream session; log in again.", ' +
        'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/x"',
    )
  })

  it.each([403, 404, 500, 503])('passes %i with its body', async (status) => {
    const { url, seen } = await start((response) => response.writeHead(status).end('theirs'))
    const response = await post(url)
    expect([response.status, await response.text(), seen.length]).toEqual([status, 'theirs', 1])
  })

  it('repeats a request that is safe to repeat when the connection was lost', async () => {
    const { url, seen } = await start((response, request, nth) => {
      if (nth === 1) request.socket.destroy()
      else response.end('ok')
    })
    expect(await (await fetch(url)).text()).toBe('ok')
    expect(seen).toHaveLength(2)
  })

  it('repeats it once', async () => {
    const { url, seen } = await start((_, request) => request.socket.destroy())
    const response = await fetch(url)
    expect([response.status, await reasonOf(response)]).toEqual([502, 'backend_no_answer'])
    expect(seen).toHaveLength(2)
  })

  it.each([
    ['a lost connection, then a 401', ['lost', 401, 200], 200, 3],
    ['a 401, then a lost connection', [401, 'lost', 200], 200, 3],
    ['one each and then another 401', [401, 'lost', 401], 502, 3],
    ['one each and then another loss', ['lost', 401, 'lost'], 502, 3],
  ] as const)('repeats once for each reason: %s', async (_what, answers, status, requests) => {
    const { url, seen } = await start((response, request, nth) => {
      const answer = answers[nth - 1] ?? 200
      if (answer === 'lost') request.socket.destroy()
      else response.writeHead(answer).end()
    })
    expect((await fetch(url)).status).toBe(status)
    expect(seen).toHaveLength(requests)
  })

  it('does not repeat a POST that may have been acted on', async () => {
    const { url, seen } = await start((_, request) => request.socket.destroy())
    expect((await post(url)).status).toBe(502)
    expect(seen).toHaveLength(1)
  })
})

describe('redirects', () => {
  const hop = (response: ServerResponse, location: string, status = 307) =>
    void response.writeHead(status, { location }).end()

  it.each([307, 308])('follows %i on the own origin with method and body', async (status) => {
    const { url, seen } = await start((response, request, nth) =>
      nth === 1 ? hop(response, '/other?x=1', status) : void response.end(request.method),
    )
    expect(await (await post(url)).text()).toBe('POST')
    expect(seen.map(({ path, body }) => [path, body])).toEqual([
      ['/', '{"a":1}'],
      ['/other?x=1', '{"a":1}'],
    ])
  })

  it('follows five and then gives up', async () => {
    const five = await start((response, _, nth) => (nth <= 5 ? hop(response, `/${nth}`) : void response.end('there')))
    expect(await (await post(five.url)).text()).toBe('there')
    const endless = await start((response, _, nth) => hop(response, `/${nth}`))
    expect(await reasonOf(await post(endless.url))).toBe('backend_error')
    expect(endless.seen).toHaveLength(6)
  })

  it('counts redirects and repeats apart', async () => {
    const { url, seen } = await start((response, _, nth) => {
      if (nth === 1) hop(response, '/moved')
      else response.writeHead(nth === 2 ? 401 : 200).end()
    })
    expect((await post(url)).status).toBe(200)
    expect(seen.map(({ path, credential }) => [path, credential])).toEqual([
      ['/', 'c1'],
      ['/moved', 'c2'],
      ['/moved', 'c3'],
    ])
  })

  it.each(['https://evil.example/', '//evil.example/x', 'http://127.0.0.1:1/'])('refuses %s', async (location) => {
    const { url, seen } = await start((response) => hop(response, location))
    const response = await post(url)
    expect([response.status, await reasonOf(response)]).toEqual([502, 'backend_error'])
    expect(response.headers.get('location')).toBeNull()
    expect(seen).toHaveLength(1)
  })

  it('shows other redirects of the own origin in our terms', async () => {
    const { url } = await start((response) => hop(response, '/mcp/next?a', 303), { path: '/p', targetPath: '/mcp' })
    const response = await post(`${url}/p`)
    expect([response.status, response.headers.get('location')]).toEqual([303, '/p/next?a'])
  })
})
