import { afterEach, describe, expect, it } from 'vitest'
import { rawConnect } from '../../support/raw.ts'
import { createSockets } from '../../support/sockets.ts'
import { startListener } from '../../support/listen/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const start = () => startListener(sockets, (request, response) => void response.end(`seen ${request.httpVersion}`))

/** All that a client is answered that sends this and no more. */
async function answerTo(bytes: string): Promise<{ text: string; served: readonly string[] }> {
  const { url, served } = await start()
  const client = rawConnect(url, bytes)
  const text = await client.until(/^HTTP\/1\.1 \d{3}[^]*?\r\n\r\n/)
  client.socket.destroy()
  return { text, served }
}

describe('a request that is not HTTP/1.1 or 1.0 as it should be written', () => {
  it.each([
    ['a tab', 'GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n'],
    ['a blank at the end', 'GET / HTTP/1.1 \r\nHost: h\r\n\r\n'],
    ['no version', 'GET /\r\nHost: h\r\n\r\n'],
    ['HTTP/0.9', 'GET / HTTP/0.9\r\nHost: h\r\n\r\n'],
    ['HTTP/1.2', 'GET / HTTP/1.2\r\nHost: h\r\n\r\n'],
    ['HTTP/2.0 in text', 'GET / HTTP/2.0\r\nHost: h\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['ICE', 'SOURCE / ICE/1.0\r\nHost: h\r\n\r\n'],
    ['RTSP', 'DESCRIBE rtsp://h/a RTSP/1.0\r\nHost: h\r\n\r\n'],
    ['RTSP in form of HTTP', 'SETUP / RTSP/1.1\r\nHost: h\r\n\r\n'],
    ['a length beyond 2^53', 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9007199254740993\r\n\r\n'],
    ['a length of 20 digits', 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n'],
    ['a length with a sign', 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na'],
    ['two lengths in one line', 'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na'],
  ])('is 400: %s', async (_what, bytes) => {
    const { text, served } = await answerTo(bytes)
    expect([text.split('\r\n')[0], served]).toEqual(['HTTP/1.1 400 Bad Request', []])
  })

  it.each([
    [
      'the longest length that can be counted',
      'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9007199254740991\r\n\r\n',
    ],
    ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
    ['an empty line before', '\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n'],
  ])('but not %s', async (_what, bytes) => {
    expect((await answerTo(bytes)).text).toMatch(/^HTTP\/1\.1 200 /)
  })
})
