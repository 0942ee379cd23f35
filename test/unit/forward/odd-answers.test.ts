import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

/** The result of a GET whose backend answers with these bytes. */
async function outcomeBy(byUndici: boolean, answer: string | Buffer): Promise<unknown> {
  const origin = await sockets.tcp((socket) => {
    socket.once('data', () => socket.end(answer))
  })
  const { url, outcomes } = await startFront(sockets, { origin, byUndici, final: true })
  await fetch(url).then(
    (response) => response.text().catch(() => ''),
    () => '',
  )
  return outcomes[0]
}

const head = (status: string, ...lines: string[]): string => `HTTP/1.1 ${status}\r\n${lines.join('\r\n')}\r\n\r\n`
const chunked = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n0\r\n\r\n')])

describe.each([
  ['on connections of our own', false],
  ['by undici', true],
])('a response that cannot be forwarded is a backend failure, %s,', (_way, byUndici) => {
  const outcomeOf = (answer: string | Buffer): Promise<unknown> => outcomeBy(byUndici, answer)

  it.each([
    'gzip, chunked',
    'gzip',
    'chunked, gzip',
    'identity',
    'chunked, chunked',
    'gzip\r\nTransfer-Encoding: chunked',
  ])('with Transfer-Encoding: %j', async (coding) => {
    const answer = [Buffer.from(head('200 OK', `Transfer-Encoding: ${coding}`)), chunked(gzipSync('{"a":1}'))]
    expect(await outcomeOf(Buffer.concat(answer))).toBe('backend_error')
  })

  it.each(['chunked', 'Chunked'])('but not with Transfer-Encoding: %s', async (coding) => {
    const answer = [Buffer.from(head('200 OK', `Transfer-Encoding: ${coding}`)), chunked(Buffer.from('{}'))]
    expect(await outcomeOf(Buffer.concat(answer))).toMatchObject({ done: true, status: 200, aborted: false })
  })

  it.each([
    '099 Status',
    '000 Status',
    '001 Status',
    '600 Status',
    '999 Status',
    '1000 Status',
    '20 Status',
    '-12 Status',
    'abc Status',
  ])('with the status %s', async (status) => {
    expect(await outcomeOf(head(status, 'Content-Length: 2') + '{}')).toBe('backend_error')
  })

  it.each(['101 Switching Protocols', '101 Status'])('with %s that was not asked for', async (status) => {
    expect(await outcomeOf(head(status, 'Connection: Upgrade', 'Upgrade: websocket') + 'abc')).toBe('backend_error')
    expect(await outcomeOf(head(status) + 'abc')).toBe('backend_error')
  })

  it('where it is cut before its head is whole it is the connection', async () => {
    expect(await outcomeOf('HTTP/1.1 200 OK\r\nContent-')).toMatchObject({
      again: { reason: 'connection_lost', failure: { code: 'backend_no_answer' } },
    })
  })
})
