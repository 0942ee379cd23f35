import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { Clock, Log } from '../core/index.ts'
import { openWatchedFile } from '../files/index.ts'
import type { TlsMaterial } from '../listen/index.ts'
import { ConfigError } from './config-error.ts'

const MAX_PEM_BYTES = 1024 * 1024

export interface OpenTlsMaterial extends TlsMaterial {
  close(): void
}

/**
 * Opens and watches the certificate and key of the listener. An unreadable or mismatched pair (between the renewals of
 * the two files) leaves the previous pair active. `ticketKeys` (48 bytes) encrypt session tickets; default: random.
 * Throws `ConfigError` without a usable pair at start.
 */
export function openTlsMaterial(
  files: { readonly certFile: string; readonly keyFile: string },
  { log, clock, ticketKeys }: { readonly log: Log; readonly clock: Clock; readonly ticketKeys?: Buffer | undefined },
): OpenTlsMaterial {
  const listeners = new Set<() => void>()
  let pair: { cert: Buffer; key: Buffer } | undefined
  const look = (): void => {
    const [cert, key] = [certFile.read(), keyFile.read()]
    if (cert === undefined || key === undefined) return
    if (pair !== undefined && pair.cert.equals(cert) && pair.key.equals(key)) return
    try {
      createSecureContext({ cert, key })
    } catch {
      log.warn({ file: files.certFile }, 'certificate and key do not match; the previous pair stays active')
      return
    }
    pair = { cert, key }
    const validTo = new X509Certificate(cert).validToDate
    const isExpired = validTo.getTime() <= clock.now()
    log[isExpired ? 'warn' : 'info']({ file: files.certFile, validTo: validTo.toISOString() }, 'certificate loaded')
    for (const listener of listeners) listener()
  }
  const open = (file: string) =>
    openWatchedFile(file, {
      maxBytes: MAX_PEM_BYTES,
      onChange: () => look(),
      onProblem: (reason) => log.warn({ file, reason }, 'listener TLS file unreadable'),
    })
  const certFile = open(files.certFile)
  const keyFile = open(files.keyFile)
  const close = (): void => {
    certFile.close()
    keyFile.close()
  }
  look()
  if (pair === undefined) {
    close()
    throw new ConfigError([
      `listen.tls: no usable certificate and key in ${files.certFile} and ${files.keyFile}; both must be PEM and match`,
    ])
  }
  const first = pair
  return {
    current: () => ({ ...(pair ?? first), ...(ticketKeys === undefined ? {} : { ticketKeys }) }),
    onChange: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close,
  }
}
