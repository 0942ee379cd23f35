import { type HeaderCredential, Secret } from '../core/index.ts'
import type { HeaderForward } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'
import { headerValue } from './header-value.ts'
import { createStaticHeaderSource } from './static.ts'

/** The additional headers of a route (`headerForward`). */
export interface Forwarded {
  /**
   * The current headers. Throws `secret_unavailable` while a secret has no value, `config_error` while it never had a
   * valid one.
   */
  current(): readonly HeaderCredential[]
  /** Reports that the backend rejected these: rereads the secrets and resolves to whether one changed. */
  reject(refused: readonly HeaderCredential[]): Promise<boolean>
}

/** The forwarded headers of a route; undefined without any. */
export function createForwarded(
  written: HeaderForward | undefined,
  { secrets, log }: Pick<ObtainDeps, 'secrets' | 'log'>,
): Forwarded | undefined {
  if (written === undefined) return undefined
  const plaintext = Object.entries(written.addPlaintextHeaders).map(([name, text]): HeaderCredential => {
    const value = headerValue('', new Secret(text), `of addPlaintextHeaders.${name}`)
    return { kind: 'header', name: name.toLowerCase(), value, isPlain: true }
  })
  const sources = written.addHeadersFromSecret.map(({ headerName, valueSecretRef }) => {
    const secret = secrets.handle(valueSecretRef)
    return { secret, ...createStaticHeaderSource({ name: headerName, prefix: '', secret, log }) }
  })
  if (plaintext.length + sources.length === 0) return undefined
  const current = (): readonly HeaderCredential[] => [...plaintext, ...sources.map(({ obtain }) => obtain())]
  return {
    current,
    async reject(refused) {
      const isAnother = (): boolean => current().some((one, index) => one !== refused[index])
      if (isAnother()) return true
      await Promise.all(sources.map(({ secret }) => secret.refresh()))
      return isAnother()
    },
  }
}
