import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClientRequest, ClientResponse } from '../../../src/core/index.ts'
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
  const echo = (request: ClientRequest, response: ClientResponse): void => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => setImmediate(() => response.end(`[${request.url} ${request.isUpgrade} ${body}]`)))
  }

  it.each([
    ['in one packet', (text: string) => [text]],
    ['in pieces', (text: string) => text.match(/[^]{1,30}/g) ?? []],
  ])('is answered as if it was not asked for, and so is what follows it: %s', async (_how, split) => {
    const listener = await startListener(sockets, echo)
    const client = rawConnect(listener.url, '')
    const smuggled = post('/third', get('/smuggled'))
    for (const piece of split(offering(get('/first')) + offering(post('/second', 'body')) + smuggled + get('/last')))
      client.socket.write(piece)
    const text = await client.until(/\[\/last/)
    expect(text.match(/\[\/\w+ \w+ \w*/g)).toEqual([
      '[/first false ',
      '[/second false body',
      '[/third false GET',
      '[/last false ',
    ])
  })
})

describe('an upgrade that is served', () => {
  const asking = offering(get('/first'))

  it('begins behind its request, with what has come behind that', async () => {
    const listener = await startListener(
      sockets,
      (request, response) => {
        const { socket } = response
        if (request.isUpgrade && socket !== null)
          setTimeout(() => {
            response.detachSocket()
            socket.pipe(socket)
          }, 20)
        else response.end('[plain]')
      },
      { servesUpgrade: () => true },
    )
    // Another one waits for its turn.
    const client = rawConnect(listener.url, get('/before') + asking + get('/smuggled'))
    await client.until(/\[plain\]GET \/smuggled HTTP\/1\.1\r\nHost: h\r\n\r\n$/)
    client.socket.write('more')
    await client.until(/\r\n\r\nmore$/)
    expect(listener.served).toEqual(['GET /before', 'GET /first'])
    client.socket.end()
    expect(await client.ended).toBe('end')
  })

  it('does not begin behind a request with a body, or of HTTP/1.0', async () => {
    const say = (request: ClientRequest, response: ClientResponse) => void response.end(`[${request.isUpgrade}]`)
    const listener = await startListener(sockets, say, { servesUpgrade: () => true })
    for (const text of [offering(post('/', 'body')), asking.replace('1.1', '1.0')])
      expect(await rawConnect(listener.url, text).until(/\]/)).toMatch(/200 OK[^]*\[false\]$/)
  })

  it('that gets another answer ends the connection with it, and nothing behind it is read', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.writeHead(501).end('no'), {
      servesUpgrade: () => true,
    })
    const client = rawConnect(listener.url, asking + get('/smuggled'))
    expect(await client.ended).toBe('end')
    expect(client.text()).toMatch(/^HTTP\/1\.1 501 .*\r\nconnection: close\r\n[^]*no/is)
    expect(listener.served).toEqual(['GET /first'])
  })

  it('is over when its client leaves, or sends too much before it has begun', async () => {
    const closed: boolean[] = []
    const listener = await startListener(
      sockets,
      (_request, response) => void response.once('close', () => closed.push(response.destroyed)),
      { servesUpgrade: () => true },
    )
    rawConnect(listener.url, asking).socket.end()
    await vi.waitFor(() => expect(closed).toEqual([true]))
    const client = rawConnect(listener.url, asking + 'x'.repeat(200_000))
    await client.ended
    await vi.waitFor(() => expect(closed).toEqual([true, true]))
  })
})

it('CONNECT is 405 when its turn has come, and nothing behind it is read', async () => {
  const listener = await startListener(sockets, (_request, response) => void setImmediate(() => response.end('[]')))
  const connect = 'CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n'
  const client = rawConnect(listener.url, get('/first') + connect + get('/smuggled'))
  await client.ended
  expect(client.text().match(/HTTP\/1\.1 \d+|method_not_allowed/g)).toEqual([
    'HTTP/1.1 200',
    'HTTP/1.1 405',
    'method_not_allowed',
  ])
  expect(listener.served).toEqual(['GET /first'])
})
