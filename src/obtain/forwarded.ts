import { type HeaderCredential, Secret } from '../core/index.ts'
import type { HeaderForward } from '../resources/index.ts'
import type { ObtainDeps } from './deps.ts'
import { headerValue } from './header-value.ts'
import { createStaticHeaderSource } from './static.ts'

/** The headers that a route adds beside the credential of its type (`headerForward`). */
export interface Forwarded {
  /** As they are now. Throws `secret_unavailable` while a secret has no value, `config_error` while it has had no usable one. */
  current(): readonly HeaderCredential[]
  /** The backend refused these: looks at the secrets anew and says whether one has changed. */
  reject(refused: readonly HeaderCredential[]): Promise<boolean>
}

/** What a route forwards; undefined for one that forwards nothing, which pays nothing for it. */
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
