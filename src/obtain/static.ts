import { asFailure, NO_CREDENTIAL, type HeaderCredential, type Log, type SecretHandle } from '../core/index.ts'
import { headerValue } from './header-value.ts'
import type { Source } from './source.ts'

/** Type `unauthenticated`: adds no credential; the caller's is removed as always. */
export function createUnauthenticatedSource(): Source {
  return { obtain: () => NO_CREDENTIAL, reject: () => false }
}

/** A source with a constant credential. */
export interface StaticSource extends Source {
  obtain(this: void): HeaderCredential
}

export interface StaticHeader {
  /** Header name, in any case. */
  readonly name: string
  /** Prefix of the value; empty for none. */
  readonly prefix: string
  readonly secret: SecretHandle
  readonly log: Log
}

/**
 * One secret in one header, the same for all callers (types `headerInjection` and `bearerToken`, decisions §3.3). A
 * new value that is not a valid header value is ignored. `obtain` throws `secret_unavailable` without a secret and
 * `config_error` while it never had a valid one.
 */
export function createStaticHeaderSource({ name, prefix, secret, log }: StaticHeader): StaticSource {
  const headerName = name.toLowerCase()
  let credential: HeaderCredential | undefined
  let version = 0

  const build = (): HeaderCredential => {
    const current = secret.current()
    version = secret.version
    try {
      credential = { kind: 'header', name: headerName, value: headerValue(prefix, current, secret.label) }
    } catch (error) {
      if (credential === undefined) throw error
      const { detail } = asFailure(error)
      log.warn({ secret: secret.label, reason: detail }, 'invalid secret, keeping the previous value')
    }
    return credential
  }

  const obtain = (): HeaderCredential => (credential !== undefined && version === secret.version ? credential : build())

  return {
    obtain,
    async reject(_caller, refused) {
      // It may have changed since this one was obtained; otherwise reread the secret.
      if (obtain() !== refused) return true
      await secret.refresh()
      return obtain() !== refused
    },
  }
}
