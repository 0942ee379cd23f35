import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { authConfig, proxyConfig, run } from '../../support/e2e/run.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The real proxy with one route, whose requests are shown on the inspector's page. */
async function start(route: object, spec: object = {}) {
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
  /** The log's line of what is over, and what the page says of it. */
  const over = async () => {
    const found = await vi.waitFor(() => {
      const line = proxy.log.lines.find((one) => one.endsWith('} request') && one.includes('"why"'))
      if (line === undefined) throw new Error(proxy.log.lines.join('\n'))
      return line
    })
    const { why, remedy, requestId } = JSON.parse(found.slice(0, -' request'.length)) as Record<string, string>
    return { why, remedy, requestId }
  }
  const onPage = async (requestId: string | undefined) => {
    const answer = await fetch(`${proxy.adminUrl}/inspect/api/requests/${requestId}`)
    return ((await answer.json()) as { why?: { cause: string; remedy: string } }).why
  }
  return { proxy, over, onPage }
}

const post = (bytes: number): string =>
  `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bytes}\r\nContent-Type: application/json\r\n\r\n`

const silent = (): Promise<string> => sockets.http(() => undefined)

describe('what ended a request is named with its value and the place where it is changed, in the log and on the page:', () => {
  it('the time for a connection', async () => {
    const target = (await sockets.tcp(() => undefined)).replace('http:', 'https:')
    const { proxy, over, onPage } = await start({ target, timeouts: { connect: '200ms' } })
    expect((await fetch(proxy.url)).status).toBe(502)
    const { why, remedy, requestId } = await over()
    expect(why).toMatch(
      /^the connection attempt timed out: https:\S+ \(UND_ERR_CONNECT_TIMEOUT\); the limit is 200 ms \(timeouts\.connect of the route\)$/,
    )
    expect(remedy).toMatch(/Raise timeouts\.connect of the route if that is expected\.$/)
    expect(await onPage(requestId)).toMatchObject({ cause: why, remedy })
  })

  it('the time for the first byte', async () => {
    const { proxy, over, onPage } = await start({ target: await silent(), timeouts: { firstByte: '200ms' } })
    expect((await fetch(proxy.url)).status).toBe(504)
    const { why, remedy, requestId } = await over()
    expect(why).toMatch(/no response in time: .*; the limit is 200 ms \(timeouts\.firstByte of the route\)$/)
    expect(remedy).toMatch(/Raise timeouts\.firstByte/)
    expect(await onPage(requestId)).toMatchObject({ cause: why, remedy })
  })

  it('the silence within an answer', async () => {
    const target = await sockets.http((_request, response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n')
    })
    const { proxy, over, onPage } = await start({ target, timeouts: { idle: '200ms' } })
    const client = rawConnect(proxy.url, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await client.ended
    const { why, remedy, requestId } = await over()
    expect(why).toMatch(/the response stalled: .*; the limit is 200 ms \(timeouts\.idle of the route\)$/)
    expect(await onPage(requestId)).toMatchObject({ cause: why, remedy })
    expect(proxy.log.lines.join('\n')).toContain('"reason":"aborted"')
  })

  it('the size of a header section', async () => {
    const { proxy, over } = await start({ target: await silent() }, { listen: { headerLimit: '8Ki' } })
    const client = rawConnect(proxy.url, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(9000)}\r\n\r\n`)
    expect(await client.until(/\}\}\}/)).toMatch(/^HTTP\/1\.1 431 /)
    client.socket.destroy()
    const { why, remedy } = await over()
    expect(why).toMatch(/; the limit is 8 KiB \(listen\.headerLimit of the ProxyConfig\)$/)
    expect(remedy).toMatch(/listen\.headerLimit/)
  })

  it('the time that a proxy which stops gives its answers', async () => {
    const target = await sockets.http((_request, response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: one\n\n')
    })
    const { proxy, over } = await start({ target })
    const client = rawConnect(proxy.url, `${post(2)}{}`)
    await client.until(/data: one/)
    await proxy.close()
    const { why } = await over()
    expect(why).toMatch(/^the proxy stopped before the response was complete; the limit is 500 ms \(fixed\)$/)
  })
})
