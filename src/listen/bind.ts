import { chmodSync, existsSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import path from 'node:path'
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
    const why = reasonOf(code, address)
    throw new Failure('config_error', { detail: `cannot listen on ${addressText(address)}: ${code}${why}`, cause })
  }
  if (address.kind === 'unix') return `unix:${address.path}`
  const { port } = server.address() as AddressInfo
  const host = address.host === '' ? 'localhost' : address.host
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** What the system's code leaves unsaid; of one in use, whoever knows the options says more. */
function reasonOf(code: string, address: ListenAddress): string {
  // Node tells a folder that is not there as one that may not be entered.
  if (address.kind === 'unix' && !existsSync(path.dirname(address.path)))
    return `, there is no folder ${path.dirname(address.path)}`
  const reason = REASONS[code]
  return reason === undefined ? '' : `, ${reason}`
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not listen there',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'there is no host of this name',
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
