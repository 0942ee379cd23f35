import { asFailure, explain, type Failure } from '../../core/index.ts'

/** What was tested. Stable, for programs. */
export type CheckName =
  | 'secret'
  | 'permissions'
  | 'file'
  | 'certificate'
  | 'target.name'
  | 'target.connection'
  | 'target.tls'
  | 'mcp'
  | 'tools'
  | 'issuer.name'
  | 'issuer.connection'
  | 'issuer.tls'
  | 'discovery'
  | 'keys'
  | 'introspection'
  | 'token'
  | 'resource'
  | 'exchange.name'
  | 'exchange.connection'
  | 'exchange.tls'
  | 'exchange'
  | 'sts.name'
  | 'sts.connection'
  | 'sts.tls'
  | 'sts'
  | 'identity'
  | 'hub'
  | 'role'
  | 'assume-role'
  | 'upstream.name'
  | 'upstream.connection'
  | 'upstream.tls'
  | 'upstream'
  | 'upstream.keys'
  | 'upstream.client'
  | 'upstream.refresh'
  | 'upstream.user-info'
  | 'upstream.resource'
  | 'upstream.server'
  | 'upstream.key'
  | 'authserver'
  | 'connections'
  | 'store'
  | 'traces'
  | 'audit'
  | 'clock'

/** One line of `extauth check`. */
export interface CheckResult {
  readonly check: CheckName
  /** The tested object: a secret, a provider, a host. */
  readonly subject: string
  /** `warning`: works now. `skipped`: `detail` has the missing precondition. */
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** The finding. Never contains a credential. */
  readonly detail: string
  /** What to change. Set for `failed` and `warning`. */
  readonly remedy?: string
}

/** A test with one or more lines. */
export type Task = () => Promise<readonly CheckResult[]>

/** Builds lines about one subject. */
export const about = (check: CheckName, subject: string) => ({
  ok: (detail: string): CheckResult => ({ check, subject, status: 'ok', detail }),
  warning: (detail: string, remedy: string): CheckResult => ({ check, subject, status: 'warning', detail, remedy }),
  failed: (detail: string, remedy: string): CheckResult => ({ check, subject, status: 'failed', detail, remedy }),
  skipped: (detail: string): CheckResult => ({ check, subject, status: 'skipped', detail }),
  /** A thrown failure: reason and remedy of the error table, with detail and code of the cause. */
  thrown: (error: unknown): CheckResult => {
    const failure = asFailure(error)
    return { check, subject, status: 'failed', detail: failureText(failure), remedy: explain(failure).remedy }
  },
})

/** A failure as text: reason, detail and code of the cause. Never contains text from a response. */
export function failureText(failure: Failure): string {
  const { reason, cause, compared } = explain(failure)
  const names = Object.keys(compared?.wanted ?? {}).filter((name) => cause.includes(`(${name})`))
  const both = names.map(
    (name) => `; received ${compared?.came[name] ?? 'none'}, expected ${compared?.wanted[name] ?? ''}`,
  )
  return `${reason}: ${cause}${both.join('')}`
}
