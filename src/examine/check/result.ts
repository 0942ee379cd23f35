import { asFailure, explain, type Failure } from '../../core/index.ts'

/** What was looked at; stable, for programs. */
export type CheckName =
  | 'secret'
  | 'permissions'
  | 'file'
  | 'certificate'
  | 'target.name'
  | 'target.connection'
  | 'target.tls'
  | 'mcp'
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
  | 'authserver'
  | 'store'
  | 'traces'
  | 'clock'

/** One line of `extauth check`. */
export interface CheckResult {
  readonly check: CheckName
  /** What in particular: a secret, a provider, a host. */
  readonly subject: string
  /** `warning` is no failure yet; `skipped` says in `detail` what is missing for it. */
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** What was found; never a credential. */
  readonly detail: string
  /** What to do about it; with `failed` and `warning`. */
  readonly remedy?: string
}

/** Something to be found out, as one or more lines. */
export type Task = () => Promise<readonly CheckResult[]>

/** Makes the lines about one subject. */
export const about = (check: CheckName, subject: string) => ({
  ok: (detail: string): CheckResult => ({ check, subject, status: 'ok', detail }),
  warning: (detail: string, remedy: string): CheckResult => ({ check, subject, status: 'warning', detail, remedy }),
  failed: (detail: string, remedy: string): CheckResult => ({ check, subject, status: 'failed', detail, remedy }),
  skipped: (detail: string): CheckResult => ({ check, subject, status: 'skipped', detail }),
  /** What the error table says about what was thrown: reason, our detail, the code beneath; and what to look at. */
  thrown: (error: unknown): CheckResult => {
    const failure = asFailure(error)
    return { check, subject, status: 'failed', detail: failureText(failure), remedy: explain(failure).remedy }
  },
})

/** A failure as people read it: reason, detail and the code of what is beneath; never a foreign text. */
export function failureText(failure: Failure): string {
  const { reason, cause, compared } = explain(failure)
  const names = Object.keys(compared?.wanted ?? {}).filter((name) => cause.includes(`(${name})`))
  const both = names.map(
    (name) => `; it has ${compared?.came[name] ?? 'none'}, wanted is ${compared?.wanted[name] ?? ''}`,
  )
  return `${reason}: ${cause}${both.join('')}`
}
