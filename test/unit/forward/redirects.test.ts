import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The response to `/us/x` with a backend at `/mcp` that redirects; `{origin}` stands for the backend's own. */
const redirected = async (
  status: number,
  location: string,
  request: { method?: string; body?: string; final?: boolean; keepBody?: boolean } = {},
): Promise<{ status: number; location: string | null; again: string | null }> => {
  let origin = ''
  origin = await sockets.http((_request, response) => {
    response
      .writeHead(status, { location: location.replace('{origin}', origin).replace('{host}', new URL(origin).host) })
      .end('moved')
  })
  const { final = false, keepBody = true, ...init } = request
  const front = await startFront(sockets, { origin, final, keepBody, route: { path: '/us', targetPath: '/mcp' } })
  const answer = await fetch(`${front.url}/us/x`, { ...init, redirect: 'manual' })
  return { status: answer.status, location: answer.headers.get('location'), again: answer.headers.get('again') }
}
const post = { method: 'POST', body: '{}' }

describe('a redirect within the backend', () => {
  it.each([301, 302, 303])('%i is rewritten to our address', async (status) => {
    const seen = await redirected(status, '{origin}/mcp/y?a=b%20c#d')
    expect(seen).toEqual({ status, location: '/us/y?a=b%20c#d', again: null })
  })

  it.each(['y', '/mcp/y', '{origin}/mcp/y', '//{host}/mcp/y'])('is understood as %s', async (location) => {
    expect((await redirected(302, location)).location).toBe('/us/y')
  })

  it.each([307, 308])('%i is followed by the loop when the body can be sent again', async (status) => {
    const seen = await redirected(status, '/mcp/y?a=%2Fb', post)
    expect(JSON.parse(seen.again ?? '')).toEqual({ reason: 'redirect', status, path: '/mcp/y?a=%2Fb' })
  })

  it.each([
    ['the body is gone', { ...post, keepBody: false }],
    ['it is the last attempt', { ...post, final: true }],
  ])('307 is answered with our address when %s', async (_name, how) => {
    expect(await redirected(307, '/mcp/y', how)).toEqual({ status: 307, location: '/us/y', again: null })
  })

  it('that leads out of the target path is 502, because no proxy URL maps to it', async () => {
    expect((await redirected(302, '/admin')).status).toBe(502)
    expect((await redirected(307, '/admin', { final: true })).status).toBe(502)
  })
})

describe('a redirect to elsewhere', () => {
  it.each([
    'https://elsewhere.test/mcp',
    '//elsewhere.test/mcp',
    'http://user:pw@{host}/mcp',
    'javascript:alert(1)',
    'http://[broken',
    '\\\\elsewhere.test\\mcp',
  ])('%s is 502', async (location) => {
    for (const status of [301, 302, 303, 307, 308]) {
      expect(await redirected(status, location)).toEqual({ status: 502, location: null, again: null })
    }
  })
})

describe('other answers with a Location', () => {
  it('201 names our address for what is under the route, and stays as it is otherwise', async () => {
    expect(await redirected(201, '/mcp/new')).toEqual({ status: 201, location: '/us/new', again: null })
    expect((await redirected(201, 'https://elsewhere.test/new')).location).toBe('https://elsewhere.test/new')
  })

  it.each(['{origin}/internal/x', '/internal/x', '//{host}/internal', 'https://{host}/mcp/x', 'http://u:p@{host}/mcp'])(
    '201 does not show what is the backend’s own and not under the route: %s',
    async (location) => {
      expect(await redirected(201, location)).toEqual({ status: 201, location: null, again: null })
    },
  )

  it('300 without a Location passes', async () => {
    const origin = await sockets.http((_request, response) => response.writeHead(300).end('choose'))
    const { url } = await startFront(sockets, { origin })
    expect(await (await fetch(url)).text()).toBe('choose')
  })
})
