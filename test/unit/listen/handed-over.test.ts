import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { get, startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const digestOf = (body: string): string => createHash('sha256').update(body, 'latin1').digest('hex')

/** No two pieces of it are alike. */
const BODY = Array.from({ length: 150_000 }, (_, index) => String(index).padStart(10)).join('')

/** A name stands twice, so that it is read by Node. */
const STRANGE = `POST /strange HTTP/1.1\r\nHost: h\r\nX: a\r\nX: b\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`

/** One that gives the answer to `/slow` later, and says to others the digest of their bodies. */
async function startHolding(options: Parameters<typeof startListener>[2] = {}) {
  const open: ServerResponse[] = []
  const listener = await startListener(
    sockets,
    (request, response) => {
      if (request.url === '/slow') {
        open.push(response)
        return
      }
      const digest = createHash('sha256')
      request.on('end', () => response.end(`[${digest.digest('hex')}]`))
      // Later than more of it has come than a request holds, so that its connection was paused for that.
      setTimeout(() => request.on('data', (chunk: Buffer) => digest.update(chunk)), 10)
    },
    { isShort: true, ...options },
  )
  return { open, listener }
}

describe('what waits for its turn on a connection that is handed over', () => {
  it('arrives in its order, however much it is', async () => {
    const { listener, open } = await startHolding()
    const client = rawConnect(listener.url, get('/slow') + STRANGE + get('/last'))
    await vi.waitFor(() => expect(open).toHaveLength(1))
    // As much has come as is read, and some more.
    await vi.waitFor(() => expect(open[0]?.socket?.readableLength).toBeGreaterThan(0))
    open[0]?.end('[slow]')
    const text = await client.until(/(?:\[[^\]]*\][^[]*){3}/)
    expect(text.match(/\[\w*\]/g)).toEqual(['[slow]', `[${digestOf(BODY)}]`, `[${digestOf('')}]`])
  })

  it('arrives in its order over TLS', async () => {
    const { listener, open } = await startHolding({ tls: { current: () => TLS.server, onChange: () => () => {} } })
    const port = Number(new URL(listener.url).port)
    const client = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    let text = ''
    client.on('data', (data: Buffer) => (text += data.toString())).write(get('/slow') + STRANGE + get('/last'))
    await vi.waitFor(() => expect(open[0]?.socket?.readableLength).toBeGreaterThan(0))
    open[0]?.end('[slow]')
    await vi.waitFor(() =>
      expect(text.match(/\[\w*\]/g)).toEqual(['[slow]', `[${digestOf(BODY)}]`, `[${digestOf('')}]`]),
    )
    client.destroy()
  })
})
