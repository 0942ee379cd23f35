import { chmodSync, existsSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import path from 'node:path'
import { causeOf, Failure } from '../core/index.ts'
import { addressText, type ListenAddress } from './address.ts'
import { clearStaleSocket } from './stale-socket.ts'

/**
 * Maximum connections waiting to be accepted: the default of 511 resets those of a burst while the event loop is
 * busy.
 */
const BACKLOG = 4096

export interface BindOptions {
  /** Permissions of a Unix socket, independent of the umask. Default 0o660: another container gets access by group. */
  readonly socketMode?: number
  /** Scheme of the URL. Default `http`. */
  readonly scheme?: 'http' | 'https'
}

/**
 * Starts listening and returns the URL: `http://host:port` with the actual port (`localhost` if it listens on all
 * interfaces), or `unix:/path`. Removes a stale Unix socket. An in-process address needs no socket. Rejects with
 * `config_error`; its cause has the system's code (`EADDRINUSE`).
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
    const why = reasonOf(code, address)
    throw new Failure('config_error', { detail: `cannot listen on ${addressText(address)}: ${code}${why}`, cause })
  }
  if (address.kind === 'unix') return `unix:${address.path}`
  const { port } = server.address() as AddressInfo
  const host = address.host === '' ? 'localhost' : address.host
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Explains a system code; the caller adds options for an address in use. */
function reasonOf(code: string, address: ListenAddress): string {
  // Node reports a missing folder as a missing permission.
  if (address.kind === 'unix' && !existsSync(path.dirname(address.path)))
    return `, missing folder ${path.dirname(address.path)}`
  const reason = REASONS[code]
  return reason === undefined ? '' : `, ${reason}`
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user has no permission to listen there',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'unknown host',
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
