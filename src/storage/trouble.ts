import { Failure } from '../core/index.ts'
import { StoreError } from './port.ts'

/** Problem of a store: text for logs, cause for metrics. */
export interface StoreTrouble {
  /** One of a fixed set, such as `late`, `OOM` or `name_not_resolved`. */
  readonly cause: string
  /** For logs; never text from outside. */
  readonly problem: string
  /** Address of the server, if any. */
  readonly host?: string
  readonly port?: number
}

/** Problems that an operator can fix: error replies by their first word, and names. */
const MEANINGS: Readonly<Record<string, string>> = {
  OOM: 'its memory is full (maxmemory)',
  NOPERM: 'its user lacks a permission',
  NOAUTH: 'it requires a password',
  WRONGPASS: 'it rejects the user or the password',
  NOREPLICAS: 'it has fewer replicas than min-replicas-to-write',
  READONLY: 'it is read-only (a replica)',
  LOADING: 'it is loading its data',
  MISCONF: 'it rejects writes because it cannot save its data',
  BUSY: 'it is busy with a script',
  MASTERDOWN: 'it has lost its master',
  name_not_resolved: 'its name has no address',
}

const KINDS: Readonly<Record<StoreError['kind'], string>> = {
  unavailable: 'it is unreachable',
  timeout: 'it does not respond in time',
  overloaded: 'too many commands are queued',
  too_few_replicas: 'too few replicas have the write',
  refused: 'it rejects commands',
  unknown_key: 'its data are sealed with a secret that is not configured',
}

const CAUSES: Readonly<Record<StoreError['kind'], string>> = {
  unavailable: 'unreachable',
  timeout: 'late',
  overloaded: 'overloaded',
  too_few_replicas: 'too_few_replicas',
  refused: 'refused',
  unknown_key: 'unknown_key',
}

/** Describes an error of a store; undefined is a response that did not arrive in time. */
export function troubleOf(error: unknown): StoreTrouble {
  if (error === undefined) return { cause: 'late', problem: KINDS.timeout }
  if (error instanceof Failure) return { cause: error.code, problem: error.detail ?? 'a secret is unusable' }
  if (!(error instanceof StoreError)) return { cause: 'other', problem: 'an error of this process' }
  const { kind, cause, code, endpoint } = error
  const known = code !== undefined && Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined
  return {
    cause: known === undefined ? CAUSES[kind] : (code ?? CAUSES[kind]),
    problem: known ?? (typeof cause === 'string' ? cause : KINDS[kind]),
    ...endpoint,
  }
}
