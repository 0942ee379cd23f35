import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { correctStreams } from '../../../src/net/undici-gaps.ts'

it('an HTTP/2 stream whose answer is whole is not aborted by a server that needs no more of the request', async () => {
  correctStreams()
  const server = createServer()
  server.on('stream', (stream) => {
    stream.on('error', () => undefined).respond({ ':status': 413 })
    stream.end('too much')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const request = session.request({ ':method': 'POST' })
  let aborts = 0
  let answer = ''
  request.on('aborted', () => aborts++).on('data', (data: Buffer) => (answer += data.toString()))
  request.write('a part of it')
  await once(request, 'close')
  expect([answer, aborts]).toEqual(['too much', 0])
  session.destroy()
  server.close()
})
