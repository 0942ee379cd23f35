import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { type MemoryGroup, memoryGroup, mostResident } from '../../support/memory-group.ts'
import { createSockets } from '../../support/sockets.ts'
import { CALL, MCP } from '../../support/e2e/credentials.ts'
import { extauth, type Running } from '../../support/e2e/process.ts'
import { authConfig, configFolder, proxyConfig } from '../../support/e2e/run.ts'
import { alone } from '../../support/e2e/workers.ts'

const MIB = 1024 * 1024
/** Of the container in config/deploy/sidecar.yaml. */
const LIMIT_BYTES = 512 * MIB
const BODY = Buffer.alloc(MIB, 'x')

const sockets = createSockets()
let running: Running | undefined
let group: MemoryGroup | undefined
afterEach(async () => {
  running?.process.kill('SIGKILL')
  await running?.ended
  group?.remove()
  group = running = undefined
  await sockets.closeAll()
})

/** The program in a container of this size, before a backend that is sick and one that is well. */
async function start(sick: string) {
  const well = await sockets.http((request, response) => {
    request.resume().on('end', () => response.end('{}'))
  })
  const route = (name: string, target: string) => ({
    name,
    path: `/${name}`,
    target: `${target}/mcp`,
    targetTls: target.startsWith('https') ? { insecureSkipVerify: true } : undefined,
    externalAuthConfigRef: { name: 'open' },
    timeouts: { connect: '20s', firstByte: '60s' },
  })
  const { directory, remove } = await configFolder({
    'open.json': authConfig('open', { type: 'unauthenticated' }),
    'proxy.json': proxyConfig({ auth: { mode: 'anonymous' }, routes: [route('sick', sick), route('well', well)] }),
  })
  sockets.closing({ close: remove })
  group = memoryGroup(LIMIT_BYTES)
  const free = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
  running = extauth(['proxy', '--config', directory, ...free], {
    through: group?.through ?? [],
    env: { EXTAUTH_MEMORY_LIMIT: String(LIMIT_BYTES) },
  })
  const { url } = (await running.line('listening')) as { url: string }
  return { url, process: running.process }
}

/** A client that sends a body of 1 MiB to `/sick`. */
function upload(url: string, framing: 'length' | 'chunks'): Socket {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' }).on('error', () => {})
  sockets.closing({ close: () => socket.destroy() })
  const line = framing === 'length' ? `Content-Length: ${BODY.length}` : 'Transfer-Encoding: chunked'
  socket.write(`POST /sick HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${line}\r\n\r\n`)
  if (framing === 'chunks') socket.write(`${BODY.length.toString(16)}\r\n`)
  socket.write(BODY)
  if (framing === 'chunks') socket.write('\r\n0\r\n\r\n')
  return socket
}

/** State of the proxy afterwards: whether it answers, whether it was killed, and its peak resident memory. */
const stateOf = async (url: string) => ({
  status: (await alone(`${url}/well`, { headers: MCP, body: CALL })).status,
  isKilled: group?.hasKilled() ?? false,
  isWithin: mostResident(running?.process.pid) < LIMIT_BYTES,
})
const WELL = { status: 200, isKilled: false, isWithin: true }

describe('a proxy in 512 MiB', () => {
  it.each(['length', 'chunks'] as const)(
    'outlives clients that leave while their backend accepts no connection: bodies with %s',
    async (framing) => {
      // It takes no part in the TLS handshake, so that no connection is made.
      const silent = createServer((socket) => socket.on('error', () => {}).resume())
      const { url } = await start(`https://${await sockets.listen(silent)}`)
      for (let round = 0; round < 40; round++) {
        const clients = Array.from({ length: 30 }, () => upload(url, framing))
        for (const client of clients) if (client.writableLength > 0) await once(client, 'drain')
        await pause(300)
        for (const client of clients) client.resetAndDestroy()
      }
      expect(await stateOf(url)).toEqual(WELL)
    },
    120_000,
  )

  it.each(['length', 'chunks'] as const)(
    'outlives 1,600 uploads at once to a backend that does not read: bodies with %s',
    async (framing) => {
      const deaf = createServer((socket) => socket.on('error', () => {}).pause())
      const { url } = await start(`http://${await sockets.listen(deaf)}`)
      for (let count = 0; count < 1600; count++) {
        upload(url, framing)
        if (count % 100 === 99) await pause(20)
      }
      await pause(8000)
      expect(await stateOf(url)).toEqual(WELL)
    },
    120_000,
  )
})
