import type { SecureContextOptions, Server } from 'node:tls'
import { causeOf, type Log } from '../core/index.ts'

/**
 * Certificate and key in PEM, kept current by whoever watches their files; and 48 bytes that encrypt session tickets, where
 * several processes are to know each other's.
 */
export interface TlsMaterial {
  current(): { readonly cert: Buffer; readonly key: Buffer; readonly ticketKeys?: Buffer }
  /** Calls back after a change; gives the function that stops it. */
  onChange(listener: () => void): () => void
}

/** What a TLS listener speaks: HTTP/1.1 over TLS 1.2 at least. */
export function secureContext(tls: TlsMaterial): SecureContextOptions & { ALPNProtocols: string[] } {
  return { ...tls.current(), minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] }
}

/**
 * Replaces the certificate of a TLS server when it changes; a broken one never replaces a working one. Gives the function
 * that stops it.
 */
export function followCertificate(server: Server, tls: TlsMaterial, log: Log): () => void {
  return tls.onChange(() => {
    try {
      server.setSecureContext(secureContext(tls))
      log.info({}, 'listener certificate replaced')
    } catch (error) {
      log.error({ cause: causeOf(error) }, 'new listener certificate is not usable, the one before stays')
    }
  })
}
