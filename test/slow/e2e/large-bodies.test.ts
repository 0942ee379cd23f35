import { createHash } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'

const MIB = 1024 * 1024
const SIZE = 200 * MIB
/** Pieces that were passed on count until they are collected: 70 to 85 MiB; a proxy that kept the body would have all of it. */
const MOST_GROWTH = 140 * MIB

const sockets = createSockets()
let running: Running | undefined
afterEach(async () => {
  running?.process.kill('SIGKILL')
  await running?.ended
  await sockets.closeAll()
})

/** Pieces that all differ, so that none can be lost, doubled or swapped unnoticed. */
const pieces = function* (): Generator<Buffer> {
  const piece = Buffer.alloc(64 * 1024, 'x')
  for (let sent = 0; sent < SIZE; sent += piece.length) {
    const copy = Buffer.from(piece)
    copy.writeUInt32BE(sent, 0)
    yield copy
  }
}
const digestOfPieces = (): string => {
  const hash = createHash('sha256')
  for (const piece of pieces()) hash.update(piece)
  return hash.digest('hex')
}
/** Hashes what it receives, slower than it could be sent: a sender without back-pressure would have to buffer the rest. */
const slowSink = () => {
  const state = { length: 0 }
  const hash = createHash('sha256')
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      const before = state.length
      state.length += chunk.length
      hash.update(chunk)
      if (Math.floor(before / (2 * MIB)) < Math.floor(state.length / (2 * MIB))) setTimeout(done, 10)
      else done()
    },
  })
  return { stream, digest: () => hash.digest('hex') }
}

/** The proxy as a process of its own in front of `target`, and how much memory it has resident now, by its own metrics. */
async function start(target: string) {
  const { directory, remove } = await configFolder({
    'auth.json': authConfig('key', {
      type: 'headerInjection',
      headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
    }),
    'proxy.json': proxyConfig({
      auth: { mode: 'anonymous' },
      routes: [{ name: 'all', path: '/', target, externalAuthConfigRef: { name: 'key' } }],
    }),
    'secrets/api/key': 'the-key',
  })
  sockets.closing({ close: remove })
  const secrets = path.join(directory, 'secrets')
  const free = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
  running = extauth(['proxy', '--config', directory, '--secrets-dir', secrets, ...free])
  const { url, admin } = (await running.line('listening')) as { url: string; admin: string }
  const resident = async (): Promise<number> => {
    const metrics = await (await fetch(`${admin}/metrics`)).text()
    return Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1])
  }
  return { url, resident }
}

/** By how many bytes the memory of the proxy grows, at most, while `work` is done. */
async function growthDuring(resident: () => Promise<number>, work: () => Promise<void>): Promise<number> {
  const before = await resident()
  const done = new AbortController()
  let [most, looks] = [before, 0]
  const watching = (async () => {
    while (!done.signal.aborted) {
      most = Math.max(most, await resident())
      looks += 1
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()
  await work()
  done.abort()
  await watching
  expect(looks).toBeGreaterThan(5)
  expect(before).toBeGreaterThan(20 * MIB)
  return most - before
}

describe('a proxy process through which 200 MiB go', () => {
  it('from the client to the backend grows by no more than pieces of it', async () => {
    const sink = slowSink()
    const target = await sockets.http((incoming, response) => {
      void pipeline(incoming, sink.stream).then(() => response.end('done'))
    })
    const { url, resident } = await start(target)
    const growth = await growthDuring(resident, async () => {
      const outgoing = request(url, { method: 'POST', headers: { 'content-length': SIZE } })
      const answered = new Promise<IncomingMessage>((resolve, reject) => {
        outgoing.on('response', resolve).on('error', reject)
      })
      await pipeline(Readable.from(pieces()), outgoing)
      expect((await answered).resume().statusCode).toBe(200)
    })
    expect(sink.digest()).toBe(digestOfPieces())
    expect(growth).toBeLessThan(MOST_GROWTH)
  }, 60_000)

  it('from the backend to the client grows by no more than pieces of it', async () => {
    const sink = slowSink()
    const target = await sockets.http((_incoming, response) => {
      void pipeline(Readable.from(pieces()), response)
    })
    const { url, resident } = await start(target)
    const growth = await growthDuring(resident, () => {
      return new Promise<void>((resolve, reject) => {
        request(url, (response) => void pipeline(response, sink.stream).then(resolve, reject))
          .on('error', reject)
          .end()
      })
    })
    expect(sink.digest()).toBe(digestOfPieces())
    expect(growth).toBeLessThan(MOST_GROWTH)
  }, 60_000)

  it('is not read further from the backend than the client reads', async () => {
    let written = 0
    const target = await sockets.http((_incoming, response) => {
      const source = Readable.from(pieces())
      source.on('data', (piece: Buffer) => (written += piece.length))
      source.pipe(response)
    })
    const { url } = await start(target)
    const outgoing = request(url)
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
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    expect(written).toBeGreaterThan(0)
    expect(written).toBeLessThan(64 * MIB)
    response.destroy()
  }, 60_000)
})
