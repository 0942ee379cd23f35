import { afterEach, describe, expect, it, vi } from 'vitest'
import { CredentialRefusal, type EndpointCredentials, Secret } from '../../../src/core/index.ts'
import {
  type Arrived,
  INITIALIZE,
  openBridge,
  result,
  shakeHands,
  startServer,
  type TestBridge,
  type TestServer,
} from '../../support/bridge/harness.ts'

const MIB = 1024 * 1024

let server: TestServer
let bridge: TestBridge

afterEach(() => server.close())

async function open(answer: (arrived: Arrived) => void, options: Parameters<typeof openBridge>[1] = {}): Promise<void> {
  server = await startServer(answer)
  bridge = openBridge(server.url, options)
}

describe('messages', () => {
  it('of 64 MiB pass in both directions', async () => {
    await open(({ body, json }) => json(200, result(body.id, { echo: body.params?.['text'] })), {
      maxMessageBytes: 128 * MIB,
    })
    bridge.read()
    const text = 'x'.repeat(64 * MIB)
    bridge.send({ id: 1, method: 'tools/call', params: { text } })
    await vi.waitFor(() => expect(bridge.lines).toHaveLength(1), { timeout: 30_000, interval: 50 })
    expect(bridge.lines[0]?.length).toBeGreaterThan(64 * MIB)
    const { result: got } = await bridge.answer(1)
    expect(got?.['echo'] === text).toBe(true)
    await bridge.close()
  }, 40_000)

  it('wait at the server while the client does not read', async () => {
    let sent = 0
    await open((arrived) => {
      const data = `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"text":"${'x'.repeat(64 * 1024)}"}}\n\n`
      arrived.events()
      const more = (): void => {
        while (!arrived.response.destroyed && sent < 40 * MIB) {
          sent += data.length
          if (!arrived.response.write(data)) return void arrived.response.once('drain', more)
        }
        arrived.response.end(`data: ${JSON.stringify(result(1))}\n\n`)
      }
      more()
    })
    bridge.send({ id: 1, method: 'tools/call' })
    // It stands still long before all is sent: only the buffers of the system and of the streams are full.
    let before = -1
    await vi.waitFor(
      () => {
        const isStill = sent > 0 && sent === before
        before = sent
        expect(isStill).toBe(true)
      },
      { timeout: 10_000, interval: 300 },
    )
    expect(sent).toBeLessThan(24 * MIB)
    expect(bridge.stdout.readableLength + bridge.stdout.writableLength).toBeLessThan(MIB)
    bridge.read()
    await bridge.answer(1)
    expect(sent).toBeGreaterThanOrEqual(40 * MIB)
    const texts = bridge.replies().filter(({ method }) => method === 'notifications/message')
    expect(texts.length).toBeGreaterThan(600)
    await bridge.close()
  }, 40_000)

  it('leave in the order of the client: a notification is with the server before the next request', async () => {
    await open((arrived) => {
      const { body, response } = arrived
      if (body.id !== undefined) return arrived.json(200, result(body.id))
      setTimeout(() => response.writeHead(202).end(), 50)
    })
    bridge.read()
    bridge.send({ method: 'notifications/a' }, { method: 'notifications/b' }, { id: 1, method: 'c' })
    await bridge.answer(1)
    expect(server.all.map(({ body }) => body.method)).toEqual(['notifications/a', 'notifications/b', 'c'])
    await bridge.close()
  })
})

describe('the end of the input', () => {
  const slow = (ms: number) => (arrived: Arrived) => {
    if (shakeHands(arrived, 's1')) return
    setTimeout(() => arrived.json(200, result(arrived.body.id)), ms)
  }

  it('lets what runs finish, then ends the session', async () => {
    await open(slow(300))
    bridge.read()
    bridge.send(INITIALIZE)
    await bridge.answer(0)
    bridge.send({ id: 1, method: 'tools/call' })
    await bridge.close(10_000)
    expect(bridge.replies().at(-1)).toMatchObject({ id: 1, result: {} })
    expect(server.all.at(-1)?.method).toBe('DELETE')
  })

  it('has a bound, and says so to whom it leaves without an answer', async () => {
    await open(slow(60_000))
    bridge.read()
    bridge.send(INITIALIZE)
    await bridge.answer(0)
    bridge.send({ id: 1, method: 'tools/call' })
    await vi.waitFor(() => expect(server.by('tools/call')).toHaveLength(1))
    await bridge.close(100)
    expect(bridge.replies().at(-1)).toMatchObject({ id: 1, error: { data: { reason: 'stopping' } } })
    expect(server.by('DELETE')).toHaveLength(1)
    await vi.waitFor(() => expect(server.by('tools/call')[0]?.isAborted).toBe(true))
  })
})

describe('a token that is refused', () => {
  const tokens = (...list: readonly string[]): EndpointCredentials => {
    let at = 0
    return {
      current: () => Promise.resolve(new Secret(list[at] ?? '')),
      refused: (used) => {
        if (used?.equals(list[at] ?? '') === true) at++
        if (at < list.length) return Promise.resolve(true)
        return Promise.reject(new CredentialRefusal('invalid_token', 'No token is left.'))
      },
    }
  }
  const demanding = (good: string) => (arrived: Arrived) => {
    if (arrived.headers.authorization === `Bearer ${good}`) return arrived.json(200, result(arrived.body.id))
    arrived.response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end()
  }

  it('is replaced and the request sent once more', async () => {
    await open(demanding('new'), { credentials: tokens('old', 'new') })
    bridge.read()
    bridge.send({ id: 1, method: 'a' }, { id: 2, method: 'b' })
    expect(await bridge.answer(1)).toMatchObject({ result: {} })
    expect(await bridge.answer(2)).toMatchObject({ result: {} })
    await bridge.close()
    expect(bridge.log.lines.join('\n')).not.toMatch(/Bearer|"old"|"new"/)
  })

  it('is an error of the request when there is no other', async () => {
    await open(demanding('good'), { credentials: tokens('one', 'two') })
    bridge.read()
    bridge.send({ id: 1, method: 'a' })
    const { error } = await bridge.answer(1)
    expect(error).toMatchObject({ code: -32_000, data: { reason: 'invalid_token' } })
    expect(error?.message).toContain('No token is left.')
    bridge.send({ id: 2, method: 'tools/call?key=marked' })
    expect((await bridge.answer(2)).error?.data).toMatchObject({ reason: 'invalid_token' })
    await bridge.close()
    const log = bridge.log.lines.join('\n')
    expect(log).toContain('invalid_token')
    expect(log).not.toContain('marked')
  })
})
