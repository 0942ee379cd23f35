import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function start(withRoot: boolean) {
  const origin = await sockets.http((inbound, response) => void response.end(inbound.url))
  const routes = [
    createRoute(sockets, origin, { name: 'short', path: '/a', targetPath: '/short' }),
    createRoute(sockets, origin, { name: 'long', path: '/a/b', targetPath: '/long', targetQuery: 'toolset=x' }),
    createRoute(sockets, origin, { name: 'exact', path: '/exact', targetPath: '/mcp', exactTarget: true }),
    createRoute(sockets, origin, { name: 'encoded', path: '/enc', targetPath: '/t%2Fu/' }),
  ]
  if (withRoot) routes.push(createRoute(sockets, origin, { name: 'root', path: '/', targetPath: '/' }))
  const proxy = await startProxy(sockets, runtimeOf(routes))
  return async (target: string, headers: Readonly<Record<string, string>> = {}) => {
    const [response] = (await once(request(proxy.url + target, { headers }).end(), 'response')) as [IncomingMessage]
    const sent = await text(response)
    const line = JSON.parse(proxy.log.lines.at(-1) ?? '{}') as { route?: string }
    return { status: response.statusCode, sent, route: line.route }
  }
}

describe('routes', () => {
  it.each([
    ['/a', 'short', '/short'],
    ['/a/', 'short', '/short/'],
    ['/a/x%20y?q=%2F', 'short', '/short/x%20y?q=%2F'],
    ['/a?X-Amz-Signature=theirs&b=%2F', 'short', '/short?b=%2F'],
    ['/a/b?x-amz-security-token=theirs', 'long', '/long?toolset=x'],
    ['/a/bc', 'short', '/short/bc'],
    ['/a/b', 'long', '/long?toolset=x'],
    ['/a/b/c?d=e', 'long', '/long/c?toolset=x&d=e'],
    ['/exact/any/thing?q', 'exact', '/mcp?q'],
    ['/enc/x', 'encoded', '/t%2Fu/x'],
    ['/ab', 'root', '/ab'],
    ['/', 'root', '/'],
    ['/A', 'root', '/A'],
    ['//a', 'root', '//a'],
    ['/%61', 'root', '/%61'],
  ])('%s goes to %s as %s', async (target, route, sent) => {
    const send = await start(true)
    expect(await send(target)).toEqual({ status: 200, route, sent })
  })

  it.each(['/', '/ab', '/A', '//a', '/x/a'])('%s is not found when no route holds it', async (target) => {
    const send = await start(false)
    expect(await send(target)).toMatchObject({ status: 404, route: '' })
  })

  it('are not called when the Host, which backends receive, contains the access token', async () => {
    const send = await start(true)
    const token = 'callers-own-token-0123456789'
    expect(await send('/a', { host: `${token}.localhost`, authorization: `Bearer ${token}` })).toMatchObject({
      status: 400,
    })
    expect(await send('/a', { host: 'x.localhost', authorization: `Bearer ${token}` })).toMatchObject({ status: 200 })
  })

  it.each(['/%61dmin', '//admin', '/admin;x', '/admin;x/y', '/%2561dmin/x', '/x;y//'])(
    'that are open do not take %s, which may mean a protected one',
    async (target) => {
      const origin = await sockets.http((inbound, response) => void response.end(inbound.url))
      const admin = createRoute(sockets, origin, { name: 'admin', path: '/admin', isProtected: true })
      const x = createRoute(sockets, origin, { name: 'x', path: '/x', isProtected: true })
      const root = createRoute(sockets, origin, { name: 'root', path: '/' })
      const proxy = await startProxy(sockets, runtimeOf([admin, x, root]))
      expect((await fetch(proxy.url + target)).status).toBe(400)
      expect((await fetch(`${proxy.url}/adm%69nistration;x//y`)).status).toBe(200)
    },
  )
})
