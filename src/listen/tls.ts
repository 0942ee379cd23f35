import type { SecureContextOptions, Server } from 'node:tls'
import { causeOf, type Log } from '../core/index.ts'

/**
 * Certificate and key in PEM, updated by the watcher of their files; and 48 bytes that encrypt session tickets,
 * shared by several processes.
 */
export interface TlsMaterial {
  current(): { readonly cert: Buffer; readonly key: Buffer; readonly ticketKeys?: Buffer }
  /** Calls `listener` after a change; returns a function that unsubscribes. */
  onChange(listener: () => void): () => void
}

/** Options of a TLS listener: HTTP/1.1 over TLS 1.2 or newer. */
export function secureContext(tls: TlsMaterial): SecureContextOptions & { ALPNProtocols: string[] } {
  return { ...tls.current(), minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] }
}

/**
 * Replaces the certificate of a TLS server when it changes; an invalid one never replaces a working one. Returns a
 * function that stops it.
 */
export function followCertificate(server: Server, tls: TlsMaterial, log: Log): () => void {
  return tls.onChange(() => {
    try {
      server.setSecureContext(secureContext(tls))
      log.info({}, 'listener certificate replaced')
    } catch (error) {
      log.error({ cause: causeOf(error) }, 'new listener certificate is invalid, keeping the previous one')
    }
  })
}
