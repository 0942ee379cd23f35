import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { once } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ClientResponse } from '../../../src/core/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { get, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const tls = { current: () => TLS.server, onChange: () => () => {} }

/** How long something takes, in milliseconds. */
async function took(what: () => Promise<void>): Promise<number> {
  const before = performance.now()
  await what()
  return performance.now() - before
}

describe('a listener that stops', () => {
  it('waits for answers and for nothing else', async () => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (request, response) => {
      if (request.url === '/slow') open.push(response)
      else response.end('ok')
    })
    const silent = rawConnect(listener.url, '')
    const idle = rawConnect(listener.url, get('/'))
    await idle.until(/ok/)
    const [busy, begun] = [rawConnect(listener.url, get('/slow')), rawConnect(listener.url, get('/slow'))]
    await vi.waitFor(() => expect(open).toHaveLength(2))
    open[1]?.writeHead(200, ['content-length', '6']).write('the ')
    await begun.until(/the /)
    listener.stop()
    const emptied = listener.emptied(60_000)
    await Promise.all([silent.ended, idle.ended])
    open[0]?.end('answer')
    expect(await busy.until(/answer/)).toMatch(/\r\nconnection: close\r\n/i)
    // This one had promised to stay.
    open[1]?.end('en')
    expect(await begun.until(/the en/)).toMatch(/\r\nconnection: keep-alive\r\n/i)
    await Promise.all([busy.ended, begun.ended])
    await emptied
    await expect(rawConnect(listener.url, get('/')).ended).resolves.toBe('reset')
  })

  it('does not wait for the rest of a head, which is no request', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.end('ok'))
    const fresh = rawConnect(listener.url, 'GET / HT')
    const used = rawConnect(listener.url, `${get('/')}GET / HT`)
    await used.until(/ok/)
    await new Promise((resolve) => setTimeout(resolve, 50))
    listener.stop()
    expect(await took(() => listener.emptied(60_000))).toBeLessThan(10_000)
    await Promise.all([fresh.ended, used.ended])
  })

  it('does not begin what waits for its turn, which its client may ask for again', async () => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (_request, response) => void open.push(response))
    const client = rawConnect(listener.url, get('/1') + get('/2'))
    await vi.waitFor(() => expect(open).toHaveLength(1))
    listener.stop()
    open[0]?.end('one')
    expect(await client.ended).toBe('end')
    expect(client.text().match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(listener.served).toEqual(['GET /1'])
  })

  it('cuts what is left when it is closed', async () => {
    const listener = await startListener(sockets, (_request, response) => void response.write('begun'))
    const client = rawConnect(listener.url, get('/'))
    await client.until(/begun/)
    listener.stop()
    expect(await took(() => listener.emptied(200))).toBeGreaterThan(150)
    await listener.close()
    await client.ended
    expect(client.text()).not.toMatch(/0\r\n\r\n$/)
  })

  it.each([
    ['says nothing', ''],
    ['breaks off its handshake', '\x16\x03\x01'],
  ])('does not wait for a TLS client that %s', async (_what, bytes) => {
    const listener = await startListener(sockets, (_request, response) => void response.end('ok'), { tls })
    const port = Number(new URL(listener.url).port)
    const client = connect(port, '127.0.0.1')
    client.on('error', () => {}).write(bytes)
    const idle = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    idle.on('error', () => {})
    await once(idle, 'secureConnect')
    await new Promise((resolve) => setTimeout(resolve, 50))
    listener.stop()
    expect(await took(() => listener.emptied(30_000))).toBeLessThan(10_000)
    await listener.close()
    for (const socket of [client, idle]) socket.destroy()
  })

  it('lets a TLS client have its answer', async () => {
    const open: ClientResponse[] = []
    const listener = await startListener(sockets, (_request, response) => void open.push(response), { tls })
    const client = connectTls({
      port: Number(new URL(listener.url).port),
      host: '127.0.0.1',
      rejectUnauthorized: false,
    })
    let text = ''
    client.on('data', (chunk: Buffer) => (text += chunk.toString()))
    client.write(get('/'))
    await vi.waitFor(() => expect(open).toHaveLength(1))
    listener.stop()
    open[0]?.end('answer')
    await once(client, 'end')
    expect(text).toMatch(/answer/)
    client.destroy()
    await listener.emptied(5000)
  })
})
