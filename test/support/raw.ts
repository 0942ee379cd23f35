import { connect, type Socket } from 'node:net'

/** A raw connection that remembers everything it received. */
export interface RawConnection {
  readonly socket: Socket
  /** All bytes so far, latin1. */
  text(): string
  /** Settles when the text matches; fails after ten seconds. */
  until(pattern: RegExp): Promise<string>
  /** How the connection ended: `end` after a FIN, `reset` after an error, `close` when it was closed without either. */
  readonly ended: Promise<'end' | 'reset' | 'close'>
}

/** Opens a raw TCP connection to an `http://host:port` origin and sends `text` (latin1) as it is. */
export const rawConnect = (origin: string, text: string): RawConnection => {
  const { hostname, port } = new URL(origin)
  const socket = connect({ host: hostname, port: Number(port) })
  let received = ''
  let how: 'end' | 'reset' | undefined
  const waiting = new Set<() => void>()
  const ended = new Promise<'end' | 'reset' | 'close'>((resolve) => {
    socket.on('end', () => (how ??= 'end'))
    socket.on('error', () => (how = 'reset'))
    socket.on('close', () => resolve(how ?? 'close'))
  })
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
    for (const check of waiting) check()
  })
  if (text !== '') socket.write(text, 'latin1')
  return {
    socket,
    text: () => received,
    ended,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`${pattern} did not come; got: ${received}`)), 10_000)
        const check = (): void => {
          if (!pattern.test(received)) return
          clearTimeout(timer)
          waiting.delete(check)
          resolve(received)
        }
        waiting.add(check)
        check()
      }),
  }
}
