import path from 'node:path'
import { type Log, Secret } from '../../core/index.ts'
import { openWatchedFile } from '../../files/index.ts'
import { type Certificate, readCertificate, type WebhookOptions } from '../../operator/index.ts'

const MAX_PEM_BYTES = 1024 * 1024

/** Watches the certificate and key that cert-manager maintains in a mounted Secret. */
export function followPair(
  directory: string,
  log: Log,
  stack: AsyncDisposableStack,
): NonNullable<WebhookOptions['files']> {
  const listeners = new Set<() => void>()
  const open = (name: string) =>
    stack.adopt(
      openWatchedFile(path.join(directory, name), {
        maxBytes: MAX_PEM_BYTES,
        onChange: () => {
          for (const listener of listeners) listener()
        },
        onProblem: (problem) => log.warn({ file: name, problem }, 'webhook certificate unreadable'),
      }),
      (file) => file.close(),
    )
  const cert = open('tls.crt')
  const key = open('tls.key')
  return {
    current(): Certificate | undefined {
      const [certText, keyText] = [cert.read()?.toString('utf8'), key.read()?.toString('utf8')]
      if (certText === undefined || keyText === undefined) return undefined
      const certificate = readCertificate(certText, new Secret(keyText))
      // The files are replaced one after the other and may not match for a moment.
      if (certificate === undefined)
        log.warn({ directory }, 'tls.crt is not a certificate, or tls.key does not match it')
      return certificate
    },
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
