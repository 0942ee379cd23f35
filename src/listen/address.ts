import { Failure, isLoopbackHost, parseHost } from '../core/index.ts'

export type ListenAddress =
  | {
      readonly kind: 'tcp'
      /** Empty for all interfaces. IPv6 literals have no brackets. */
      readonly host: string
      /** 0 for any free port. */
      readonly port: number
      readonly isLoopback: boolean
    }
  | { readonly kind: 'unix'; readonly path: string; readonly isLoopback: true }
  /** No socket: only this process connects, through `Listener.connect`. */
  | { readonly kind: 'process'; readonly isLoopback: true }

/** Address of a listener without a socket. */
export const IN_PROCESS: ListenAddress = { kind: 'process', isLoopback: true }

/**
 * Parses `host:port`, `[::1]:port`, `:port` (all interfaces) or `unix:/path`. Only a loopback host or a Unix socket
 * is `isLoopback` (decisions §2.1). Throws `config_error`.
 */
export function parseListenAddress(text: string): ListenAddress {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length)
    if (!path.startsWith('/')) throw unreadable(text)
    return { kind: 'unix', path, isLoopback: true }
  }
  const address = text.startsWith(':') ? parseHost(`x${text}`) : parseHost(text)
  if (address?.port === undefined) throw unreadable(text)
  const host = text.startsWith(':') || address.host === '*' ? '' : address.host
  return { kind: 'tcp', host, port: address.port, isLoopback: host !== '' && isLoopbackHost(host) }
}

const unreadable = (text: string): Failure =>
  new Failure('config_error', { detail: `"${text}" is not an address, expected host:port, :port or unix:/path` })

/** The address in messages: `*:8080` for all interfaces. */
export const addressText = (address: ListenAddress): string => {
  if (address.kind === 'process') return 'this process'
  return address.kind === 'unix' ? address.path : `${address.host === '' ? '*' : address.host}:${address.port}`
}
