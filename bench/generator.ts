import { connect, type Socket } from 'node:net'
import { Connection } from './connection.ts'
import type { Command, EventsResult, LoadResult } from './commands.ts'

type Load = Extract<Command, { kind: 'load' }>
type Prepare = Extract<Command, { kind: 'prepare' }>

/** The process that makes the load: one command at a time, by IPC. */
const quantile = (sorted: Float64Array, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

const callOf = (tool: string, size: number): string => {
  const call = (text: string): string =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: { text } } })
  return call('x'.repeat(size - call('').length))
}

const requestOf = (url: URL, size: number, path: string, authorization?: string, tool?: string): Buffer => {
  const body = tool !== undefined ? callOf(tool, size) : size === 0 ? '' : JSON.stringify('x'.repeat(size - 2))
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${url.host}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2025-11-25',
    'user-agent: bench',
    `content-length: ${size}`,
    ...(authorization === undefined ? [] : [`authorization: ${authorization}`]),
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** Bytes of the request after which a connection is kept. */
const KEPT_SIZE = 1024

/** Requests that are made once, and which of them is the next. */
const kept = new Map<string, { readonly requests: readonly Buffer[]; next: number }>()

const requestsOf = ({ url, size, paths = [], authorizations = [], tool }: Omit<Prepare, 'kind' | 'name'>): Buffer[] => {
  const to = new URL(url)
  return Array.from({ length: Math.max(paths.length, authorizations.length, 1) }, (_, at) =>
    requestOf(to, size, paths[at % paths.length] ?? to.pathname, authorizations[at % authorizations.length], tool),
  )
}

const load = async (command: Load): Promise<LoadResult> => {
  const { connections: count, ms } = command
  const url = new URL(command.url)
  const connections = await Promise.all(Array.from({ length: count }, () => Connection.open(url)))
  const own = kept.get(command.prepared ?? '') ?? { requests: requestsOf(command), next: 0 }
  const latencies: number[] = []
  const endsAt = performance.now() + ms
  const startedAt = performance.now()
  await Promise.all(
    connections.map(
      (connection) =>
        new Promise<void>((resolve, reject) => {
          const next = (): void => {
            const sentAt = performance.now()
            if (sentAt >= endsAt) return resolve()
            connection.exchange(own.requests[own.next++ % own.requests.length] ?? Buffer.alloc(0), (failure) => {
              if (failure !== undefined) return reject(failure)
              latencies.push(performance.now() - sentAt)
              next()
            })
          }
          next()
        }),
    ),
  )
  const seconds = (performance.now() - startedAt) / 1000
  for (const connection of connections) connection.close()
  const sorted = Float64Array.from(latencies).sort()
  const [p50Ms, p99Ms] = [quantile(sorted, 0.5), quantile(sorted, 0.99)]
  return { requests: latencies.length, seconds, p50Ms, p99Ms }
}

/** Opens an event stream; `onEvent` gets the milliseconds since its event was written, and since it was asked for. */
const openStream = (url: URL, onEvent: (delayMs: number, sinceAskedMs: number) => void): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
    const askedAt = process.hrtime.bigint()
    let text = ''
    socket.once('error', reject).once('close', () => reject(new Error('the stream was closed')))
    socket.write(`GET ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\naccept: text/event-stream\r\n\r\n`)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      let end = text.indexOf('\n\n')
      for (; end >= 0; end = text.indexOf('\n\n')) {
        const written = /data: (\d+)$/.exec(text.slice(0, end))?.[1]
        text = text.slice(end + 2)
        if (written === undefined) continue
        const now = process.hrtime.bigint()
        onEvent(Number(now - BigInt(written)) / 1e6, Number(now - askedAt) / 1e6)
        resolve(socket)
      }
    })
  })

let idle: (() => void)[] = []

/** Opens until there are `count`; `open` gives what closes one. */
const openIdle = async (count: number, open: () => Promise<() => void>): Promise<void> => {
  // Some at a time, so that no backlog is measured.
  while (idle.length < count) {
    const some = Math.min(50, count - idle.length)
    idle.push(...(await Promise.all(Array.from({ length: some }, open))))
  }
}

const idleStream = async (url: URL): Promise<() => void> => {
  const socket = await openStream(url, () => undefined)
  return () => socket.destroy()
}

const keptConnection = async (url: URL): Promise<() => void> => {
  const connection = await Connection.open(url)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  connection.exchange(requestOf(url, KEPT_SIZE, url.pathname), (failure) => (failure ? reject(failure) : resolve()))
  await promise
  return () => connection.close()
}

const closeIdle = (): void => {
  for (const close of idle) close()
  idle = []
}

const events = async (url: URL, count: number, ms: number): Promise<EventsResult> => {
  const delays: number[] = []
  let isMeasuring = false
  const sockets: Socket[] = []
  for (let index = 0; index < count; index++) {
    sockets.push(await openStream(url, (delayMs) => void (isMeasuring && delays.push(delayMs))))
  }
  isMeasuring = true
  await new Promise((resolve) => setTimeout(resolve, ms))
  for (const socket of sockets) socket.destroy()
  const sorted = Float64Array.from(delays).sort()
  return { count: sorted.length, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) }
}

/** From the request to its first event, two at a time: more would wait for each other. */
const firstEvents = async (url: URL, count: number): Promise<EventsResult> => {
  const delays: number[] = []
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const socket = await openStream(url, (_delayMs, sinceAskedMs) => delays.push(sinceAskedMs))
      socket
        .removeAllListeners()
        .on('error', () => undefined)
        .destroy()
    }
  }
  await Promise.all(Array.from({ length: 2 }, worker))
  const sorted = Float64Array.from(delays).sort()
  return { count: sorted.length, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) }
}

const run = async (command: Command): Promise<unknown> => {
  const url = new URL(command.url)
  if (command.kind === 'load') return load(command)
  if (command.kind === 'prepare') return void kept.set(command.name, { requests: requestsOf(command), next: 0 })
  if (command.kind === 'events') return events(url, command.count, command.ms)
  if (command.kind === 'first-events') return firstEvents(url, command.count)
  if (command.kind === 'close-idle') return closeIdle()
  return openIdle(command.count, () => (command.kind === 'open-kept' ? keptConnection(url) : idleStream(url)))
}

process.on('message', (command: Command) => {
  run(command).then(
    (result) => process.send?.({ result: result ?? null }),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
