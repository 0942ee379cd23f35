import { chmodSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import { causeOf, Failure } from '../core/index.ts'
import { addressText, type ListenAddress } from './address.ts'
import { clearStaleSocket } from './stale-socket.ts'

/** Connections that may wait to be accepted: the default of 511 resets those of a burst while the event loop is busy. */
const BACKLOG = 4096

export interface BindOptions {
  /** Permissions of a Unix socket, whatever the umask says. Default 0o660: the group is how a neighbour is let in. */
  readonly socketMode?: number
  /** Of the URL. Default `http`. */
  readonly scheme?: 'http' | 'https'
}

/**
 * Makes a server listen and gives the URL to reach it by: `http://host:port` with the real port (`localhost` when it
 * listens on all interfaces), or `unix:/path`. A Unix socket that a killed process has left behind does not keep it from
 * starting. An address inside the process needs nothing. Rejects with `config_error`; its cause has the system's code (`EADDRINUSE`).
 */
export async function bind(server: Server, address: ListenAddress, options: BindOptions = {}): Promise<string> {
  const { socketMode = 0o660, scheme = 'http' } = options
  if (address.kind === 'process') return `${scheme}://localhost`
  try {
    if (address.kind === 'unix') await clearStaleSocket(address.path)
    await listening(server, address)
    if (address.kind === 'unix') chmodSync(address.path, socketMode)
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    const code = causeOf(cause).code ?? 'unknown error'
    throw new Failure('config_error', { detail: `cannot listen on ${addressText(address)}: ${code}`, cause })
  }
  if (address.kind === 'unix') return `unix:${address.path}`
  const { port } = server.address() as AddressInfo
  const host = address.host === '' ? 'localhost' : address.host
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function listening(server: Server, address: Exclude<ListenAddress, { kind: 'process' }>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const where =
    address.kind === 'unix'
      ? { path: address.path }
      : { port: address.port, ...(address.host === '' ? {} : { host: address.host }) }
  server.once('error', reject)
  server.listen({ ...where, backlog: BACKLOG }, resolve)
  await promise.finally(() => server.off('error', reject))
}
