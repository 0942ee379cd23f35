/**
 * The crowd of `crowd.ts`, in a process of its own so that its work is not measured: `URL STREAMS READERS`. Says its URL when
 * all are connected, and by message `count` how many still are.
 */
import { connect, type Socket } from 'node:net'

const [url = '', streams = '0', readers = '0'] = process.argv.slice(2)
const { hostname, port } = new URL(url)
/** Connections that are being made at a time. */
const AT_ONCE = 100
const BYTES_PER_SECOND = 1024

async function open(path: string): Promise<Socket> {
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAccept: text/event-stream\r\n\r\n`)
  await new Promise((resolve) => socket.once('readable', () => resolve(undefined)).once('close', resolve))
  return socket
}

async function openAll(path: string, count: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = []
  while (sockets.length < count) {
    const some = Math.min(AT_ONCE, count - sockets.length)
    sockets.push(...(await Promise.all(Array.from({ length: some }, () => open(path)))))
  }
  return sockets
}

const silent = await openAll('/bearerToken/idle', Number(streams))
for (const socket of silent) socket.resume()
const slow = await openAll('/bearerToken/endless', Number(readers))
setInterval(() => {
  for (const socket of slow) socket.read(BYTES_PER_SECOND)
}, 1000)
const alive = (sockets: readonly Socket[]): number =>
  sockets.filter(({ destroyed, readableEnded }) => !destroyed && !readableEnded).length
process.on('message', () => process.send?.({ streams: alive(silent), readers: alive(slow) }))
process.on('disconnect', () => process.exit())
process.send?.(url)
