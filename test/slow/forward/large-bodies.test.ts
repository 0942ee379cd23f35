import { createHash } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { startFront } from '../../support/forward/front.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const MIB = 1024 * 1024
const SIZE = 200 * MIB
/** Client, proxy and backend share this process, and released memory counts until it is collected. */
const MEMORY_BOUND = 120 * MIB

/** 200 MiB in pieces that all differ, so that nothing can be lost, doubled or swapped unnoticed. */
const pieces = function* (): Generator<Buffer> {
  const piece = Buffer.alloc(64 * 1024, 'x')
  for (let sent = 0; sent < SIZE; sent += piece.length) {
    const copy = Buffer.from(piece)
    copy.writeUInt32BE(sent, 0)
    yield copy
  }
}
let digest: string | undefined
function digestOfPieces(): string {
  if (digest !== undefined) return digest
  const hash = createHash('sha256')
  for (const piece of pieces()) hash.update(piece)
  return (digest = hash.digest('hex'))
}
/** Hashes what it receives and remembers the most memory that was held outside the heap meanwhile. */
const measuringSink = () => {
  const hash = createHash('sha256')
  const state = { most: 0, length: 0 }
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      hash.update(chunk)
      state.length += chunk.length
      state.most = Math.max(state.most, process.memoryUsage().arrayBuffers)
      // Slower than the source, so that memory would grow if anybody did not wait.
      if (state.length % (4 * MIB) < 64 * 1024) setTimeout(done, 2)
      else done()
    },
  })
  return { stream, state, digest: () => hash.digest('hex') }
}

describe('200 MiB', () => {
  it('from the client to the backend need bounded memory', async () => {
    const sink = measuringSink()
    const origin = await sockets.http((incoming, response) => {
      void pipeline(incoming, sink.stream).then(() => response.end('done'))
    })
    const front = await startFront(sockets, { origin })
    const before = process.memoryUsage().arrayBuffers
    const outgoing = request(front.url, { method: 'POST', headers: { 'content-length': SIZE } })
    const answered = new Promise((resolve, reject) => {
      outgoing.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject)
    })
    await pipeline(Readable.from(pieces()), outgoing)
    expect(await answered).toBe(200)
    expect(sink.digest()).toBe(digestOfPieces())
    expect(sink.state.most - before).toBeLessThan(MEMORY_BOUND)
  }, 60_000)

  it('from the backend to the client need bounded memory', async () => {
    const origin = await sockets.http((_incoming, response) => {
      void pipeline(Readable.from(pieces()), response)
    })
    const front = await startFront(sockets, { origin })
    const before = process.memoryUsage().arrayBuffers
    const sink = measuringSink()
    await new Promise<void>((resolve, reject) => {
      const outgoing = request(front.url, (response) => {
        pipeline(response, sink.stream).then(resolve, reject)
      })
      outgoing.on('error', reject).end()
    })
    expect(sink.state.length).toBe(SIZE)
    expect(sink.digest()).toBe(digestOfPieces())
    expect(sink.state.most - before).toBeLessThan(MEMORY_BOUND)
  }, 60_000)

  it('that are not read stop at the backend', async () => {
    let written = 0
    const origin = await sockets.http((_incoming, response) => {
      const source = Readable.from(pieces())
      source.on('data', (piece: Buffer) => (written += piece.length))
      source.pipe(response)
    })
    const front = await startFront(sockets, { origin })
    const outgoing = request(front.url)
    const response = await new Promise<IncomingMessage>((resolve) => {
      outgoing
        .on('response', resolve)
        .on('error', () => undefined)
        .end()
    })
    response.pause()
    let last = -1
    while (last !== written) {
      last = written
      await new Promise((resolve) => setTimeout(resolve, 150))
    }
    expect(written).toBeLessThan(64 * MIB)
    response.destroy()
  })
})
