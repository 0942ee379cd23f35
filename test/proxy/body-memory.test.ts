import { afterEach, describe, expect, it, vi } from 'vitest'
import { rawConnect } from '../support/raw.ts'
import { createSockets } from '../support/sockets.ts'
import { createRoute, runtimeOf, startProxy, startRawBackend, type RouteOptions } from './harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function limited(options: RouteOptions) {
  const backend = await startRawBackend(sockets)
  const runtime = runtimeOf([createRoute(sockets, backend.origin, options)])
  return { backend, proxy: await startProxy(sockets, runtime, { bufferedBodiesBytes: 1000 }) }
}

const head = (lines: string): string => `POST / HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

describe('memory for all bodies that are kept', () => {
  /** A client that has sent all but the last byte of a body, so that it is being kept. */
  async function holding(url: string, length: number) {
    const client = rawConnect(url, head(`Content-Length: ${length}\r\n`) + 'x'.repeat(length - 1))
    await new Promise((resolve) => setTimeout(resolve, 50))
    return client
  }

  it('is bounded: one more that must be kept gets 503 and when to come back, until there is room', async () => {
    const { backend, proxy } = await limited({ needsBody: true })
    const first = await holding(proxy.url, 600)
    for (const lines of ['Content-Length: 600\r\n', 'Transfer-Encoding: chunked\r\n']) {
      const body = lines.startsWith('T') ? `${chunk('x'.repeat(600))}0\r\n\r\n` : 'x'.repeat(600)
      const refused = await rawConnect(proxy.url, head(lines) + body).until(/\}\}\}/)
      expect(refused).toMatch(/^HTTP\/1\.1 503 .*retry-after: 2\r\n.*"reason":"overloaded"/is)
    }
    const small = await rawConnect(proxy.url, `${head('Content-Length: 300\r\n')}${'x'.repeat(300)}`).until(/ 200 /)
    expect(small).toContain('{}')
    first.socket.write('x')
    await first.until(/ 200 /)
    await rawConnect(proxy.url, `${head('Content-Length: 900\r\n')}${'x'.repeat(900)}`).until(/ 200 /)
    expect(backend.received.join('').match(/POST \/ /g)).toHaveLength(3)
  })

  it('does not keep out one that is alone, however large', async () => {
    const { proxy } = await limited({ needsBody: true })
    const client = rawConnect(proxy.url, `${head('Content-Length: 5000\r\n')}${'x'.repeat(5000)}`)
    expect(await client.until(/\r\n\r\n/)).toContain(' 200 ')
  })

  it('is not needed by a body that can be streamed', async () => {
    const { backend, proxy } = await limited({})
    await holding(proxy.url, 900)
    const client = rawConnect(proxy.url, `${head('Content-Length: 600\r\n')}${'y'.repeat(600)}`)
    await client.until(/ 200 /)
    const chunked = rawConnect(proxy.url, `${head('Transfer-Encoding: chunked\r\n')}${chunk('z'.repeat(600))}0\r\n\r\n`)
    await chunked.until(/ 200 /)
    expect(backend.received.join('')).toMatch(/y{600}.*z{600}/s)
  })

  it('is free again after clients that left', async () => {
    const { proxy } = await limited({ needsBody: true })
    for (let turn = 0; turn < 5; turn++) {
      const client = await holding(proxy.url, 900)
      client.socket.resetAndDestroy()
      await client.ended
    }
    await vi.waitFor(() => expect(proxy.log.lines).toHaveLength(5))
    await rawConnect(proxy.url, `${head('Content-Length: 600\r\n')}${'x'.repeat(600)}`).until(/ 200 /)
  })
})
