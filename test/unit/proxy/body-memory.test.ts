import { afterEach, describe, expect, it, vi } from 'vitest'
import { BodyBudget, StreamBudget } from '../../../src/proxy/body-budget.ts'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy, startRawBackend, type RouteOptions } from '../../support/proxy/harness.ts'

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

  it('is bounded: another buffered body gets 503 with Retry-After, until memory is free', async () => {
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

  it('has a part for small ones, which large ones leave free', () => {
    const budget = new BodyBudget(1024 * 1024)
    const holders = Array.from({ length: 12 }, () => ({ keptBytes: 0 }))
    expect(holders.slice(0, 8).map((holder) => budget.take(holder, 128 * 1024))).toEqual([
      ...Array(7).fill(true),
      false,
    ])
    expect(holders.slice(8, 11).map((holder) => budget.take(holder, 64 * 1024))).toEqual([true, true, false])
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

describe('memory for bodies that are streamed', () => {
  const KIB = 1024
  const holder = () => {
    const one = { streamBytes: 0, isHeld: false, holdClient: (isHeld: boolean) => void (one.isHeld = isHeld) }
    return one
  }

  it('is for so many: beyond the limit clients are read no further, beyond four times it nothing is streamed', () => {
    const budget = new StreamBudget(512 * KIB)
    const holders = Array.from({ length: 20 }, holder)
    const begun = holders.filter((one) => {
      if (budget.isFull) return false
      budget.begin(one)
      return true
    })
    expect(begun.filter(({ isHeld }) => !isHeld)).toHaveLength(2)
    expect(begun.filter(({ isHeld }) => isHeld)).toHaveLength(13)
  })

  it('is given back when a body flows, and when its request is over', () => {
    const budget = new StreamBudget(256 * KIB)
    const [first, second] = [holder(), holder()]
    budget.begin(first)
    budget.begin(second)
    expect([first.isHeld, second.isHeld]).toEqual([false, true])
    budget.flow(second)
    expect(second.isHeld).toBe(false)
    budget.end(first)
    budget.stall(second)
    expect([second.isHeld, second.streamBytes]).toEqual([false, 192 * KIB])
    budget.end(second)
    expect([first.streamBytes, second.streamBytes, budget.isFull]).toEqual([0, 0, false])
  })

  it('rejects streamed bodies beyond it, but no body that has arrived completely', async () => {
    const deaf = await sockets.tcp((socket) => void socket.pause())
    const backend = await startRawBackend(sockets)
    const routes = [
      createRoute(sockets, deaf, { path: '/deaf' }),
      createRoute(sockets, backend.origin, { name: 'well', path: '/well' }),
    ]
    const proxy = await startProxy(sockets, runtimeOf(routes), {
      bufferedBodiesBytes: 1000,
      streamedBodiesBytes: 128 * KIB,
    })
    const large = (path: string) => `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\nxxx`
    for (let count = 0; count < 4; count++) {
      rawConnect(proxy.url, large('/deaf'))
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    const refused = await rawConnect(proxy.url, large('/well')).until(/\}\}\}/)
    expect(refused).toMatch(/^HTTP\/1\.1 503 .*retry-after: 2\r\n.*"reason":"overloaded"/is)
    const small = `POST /well HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n${'x'.repeat(900)}`
    await rawConnect(proxy.url, small).until(/ 200 /)
  })
})
