import { asFailure, NO_CREDENTIAL, type HeaderCredential, type Log, type SecretHandle } from '../core/index.ts'
import { headerValue } from './header-value.ts'
import type { Source } from './source.ts'

/** Type `unauthenticated`: nothing is added, and nothing of the caller's is sent either. */
export function createUnauthenticatedSource(): Source {
  return { obtain: () => NO_CREDENTIAL, reject: () => false }
}

/** A source whose credential is at hand, whoever asks. */
export interface StaticSource extends Source {
  obtain(this: void): HeaderCredential
}

export interface StaticHeader {
  /** Header name, in any case. */
  readonly name: string
  /** Before the secret in the value; empty for none. */
  readonly prefix: string
  readonly secret: SecretHandle
  readonly log: Log
}

/**
 * One secret in one header, the same for every caller (types `headerInjection` and `bearerToken`, decisions §3.3). A new
 * value that can't be a header keeps the one before. `obtain` throws `secret_unavailable` while there is no secret and
 * `config_error` while there has never been a usable one.
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
      log.warn({ secret: secret.label, reason: detail }, 'secret is not usable, the value from before stays')
    }
    return credential
  }

  const obtain = (): HeaderCredential => (credential !== undefined && version === secret.version ? credential : build())

  return {
    obtain,
    async reject(_caller, refused) {
      // It may have changed since this one was taken; otherwise only the source can tell.
      if (obtain() !== refused) return true
      await secret.refresh()
      return obtain() !== refused
    },
  }
}
