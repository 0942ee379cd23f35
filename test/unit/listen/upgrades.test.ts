import { afterEach, describe, expect, it } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { get, post, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const offering = (request: string): string =>
  request.replace(
    'Host: h\r\n',
    'Host: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n',
  )

describe('an upgrade that is not served', () => {
  it.each([
    ['GET', offering(get('/first'))],
    ['POST', offering(post('/first', 'first body'))],
  ])('is answered as if it was not asked for, and ends the connection (%s)', async (_method, bytes) => {
    const listener = await startListener(sockets, (request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => response.end(`[${body}]`))
    })
    const client = rawConnect(listener.url, bytes)
    expect(await client.ended).toBe('end')
    expect(client.text()).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n.*\[(?:first body)?\]/is)
  })

  it.each([
    ['in the same packet', (rest: string) => [rest]],
    ['in pieces that begin in the same packet', (rest: string) => [rest.slice(0, 30), rest.slice(30)]],
  ])('lets nothing be misread that was sent behind it %s', async (_how, split) => {
    const listener = await startListener(sockets, (_request, response) => {
      setTimeout(() => response.end('answered'), 100)
    })
    // The parser loses the head of the second request; what is left of it reads like a third.
    const [behind = '', ...later] = split(post('/second', get('/smuggled')))
    const client = rawConnect(listener.url, offering(get('/first')) + behind)
    for (const piece of later) setTimeout(() => client.socket.write(piece), 30)
    setTimeout(() => client.socket.write(get('/third')), 50)
    await client.ended
    expect(listener.served).toEqual(['GET /first'])
    expect(client.text().match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(client.text()).toContain('answered')
  })

  it('behind other requests ends the connection with its own answer', async () => {
    const listener = await startListener(sockets, (request, response) => {
      setTimeout(() => response.end(`[${request.url}]`), 10)
    })
    const client = rawConnect(listener.url, get('/1') + get('/2') + offering(get('/3')) + get('/4'))
    await client.ended
    expect(client.text().match(/\[[^\]]*\]/g)).toEqual(['[/1]', '[/2]', '[/3]'])
  })

  it('as CONNECT is refused', async () => {
    const listener = await startListener(sockets, () => {})
    const client = rawConnect(listener.url, 'CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n')
    expect(await client.until(/method_not_allowed$/)).toMatch(/^HTTP\/1\.1 405 /)
  })
})
