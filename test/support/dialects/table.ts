import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { asFailure, FAILURES } from '../../../src/core/index.ts'
import type { Answer } from '../upstreams/idp.ts'

/** Outcome of a request: see the head of logins.yaml. */
export type Outcome = 'ok' | 'deadGrant' | 'outage' | 'configuration' | 'denied' | 'request' | 'proxy'

/** A response or request seen in the field. */
export interface Dialect {
  readonly provider: string
  readonly kind: string
  readonly when?: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly contentType?: string
  /** A string is sent as it is, anything else as JSON. */
  readonly body?: unknown
  readonly refusesWithout?: string
  readonly refusesWith?: string
  readonly claims?: Readonly<Record<string, unknown>>
  readonly query?: string
  /** Characters of the authorization code. */
  readonly codeLength?: number
  readonly responseMode?: 'form_post'
  /** Of callers.yaml: see its head. */
  readonly settings?: Readonly<Record<string, unknown>>
  readonly identity?: string
  readonly rule?: string
  /** The provider had another key under this `kid` before. */
  readonly replaced?: boolean
  readonly expect: Outcome
  /** Part of the detail that the log has. */
  readonly detail?: string
  readonly note?: string
}

/** The rows of a kind, each with a name for its test. */
export function dialectsOf(file: 'logins' | 'callers', kind: string): (Dialect & { readonly name: string })[] {
  const rows = parse(readFileSync(new URL(`${file}.yaml`, import.meta.url), 'utf8')) as Dialect[]
  return rows
    .filter((row) => row.kind === kind)
    .map((row) => {
      const answered =
        JSON.stringify(row.body ?? row.claims ?? row.query ?? row.responseMode ?? row.codeLength)?.slice(0, 80) ?? ''
      return Object.assign(row, { name: `${row.provider}: ${row.status ?? ''} ${answered} → ${row.expect}` })
    })
}

/** The answer of a row. */
export const answerOf = ({ status = 200, headers, contentType = 'application/json', body }: Dialect): Answer => ({
  status,
  headers: { 'content-type': contentType, ...headers },
  ...(body === undefined ? {} : { body }),
})

/** Whether a server of this dialect answers a form as the row has it; else it gives what was asked for. */
export const isAnswered = (
  { refusesWithout, refusesWith }: Dialect,
  form: Readonly<Record<string, string>>,
): boolean =>
  refusesWithout !== undefined ? !(refusesWithout in form) : refusesWith === undefined || refusesWith in form

const OUTCOMES = {
  caller_token: 'deadGrant',
  caller_rights: 'denied',
  configuration: 'configuration',
  identity_provider: 'outage',
  backend: 'outage',
  request: 'request',
  proxy: 'proxy',
} as const satisfies Record<string, Outcome>

/** The result of a promise, with the detail of its failure. */
export async function outcomeOf(
  work: Promise<unknown>,
): Promise<{ readonly outcome: Outcome; readonly detail: string }> {
  try {
    await work
    return { outcome: 'ok', detail: '' }
  } catch (error) {
    const failure = asFailure(error)
    return { outcome: OUTCOMES[FAILURES[failure.code].fault], detail: failure.detail ?? String(failure.cause) }
  }
}
