import { Failure } from '../core/index.ts'
import { StoreError } from './port.ts'

/** What is wrong with a store: for logs, and by its cause for metrics. */
export interface StoreTrouble {
  /** One of a few words, such as `late`, `OOM` or `name_not_resolved`. */
  readonly cause: string
  /** For people; nothing that came from outside. */
  readonly problem: string
  /** Of the server that was asked, where one was. */
  readonly host?: string
  readonly port?: number
}

/** What an operator can do something about: error replies by their first word, and names. */
const MEANINGS: Readonly<Record<string, string>> = {
  OOM: 'its memory is full (maxmemory)',
  NOPERM: 'its user lacks a right',
  NOAUTH: 'it wants a password',
  WRONGPASS: 'it refuses the user or the password',
  NOREPLICAS: 'it has fewer replicas than min-replicas-to-write',
  READONLY: 'it takes no writes (a replica)',
  LOADING: 'it still loads its data',
  MISCONF: 'it takes no writes because it can’t save its data',
  BUSY: 'it is busy with a script',
  MASTERDOWN: 'it has lost its master',
  name_not_resolved: 'its name has no address',
}

const KINDS: Readonly<Record<StoreError['kind'], string>> = {
  unavailable: 'it can’t be reached',
  timeout: 'it does not answer in time',
  overloaded: 'too many commands wait for it',
  too_few_replicas: 'too few replicas have what was written',
  refused: 'it refuses',
  unknown_key: 'what is in it was sealed with a secret that is not configured here',
}

const CAUSES: Readonly<Record<StoreError['kind'], string>> = {
  unavailable: 'unreachable',
  timeout: 'late',
  overloaded: 'overloaded',
  too_few_replicas: 'too_few_replicas',
  refused: 'refused',
  unknown_key: 'unknown_key',
}

/** What an error of a store means; undefined stands for an answer that did not come in time. */
export function troubleOf(error: unknown): StoreTrouble {
  if (error === undefined) return { cause: 'late', problem: KINDS.timeout }
  if (error instanceof Failure) return { cause: error.code, problem: error.detail ?? 'a secret can’t be used' }
  if (!(error instanceof StoreError)) return { cause: 'other', problem: 'an error of this process' }
  const { kind, cause, code, endpoint } = error
  const known = code !== undefined && Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined
  return {
    cause: known === undefined ? CAUSES[kind] : (code ?? CAUSES[kind]),
    problem: known ?? (typeof cause === 'string' ? cause : KINDS[kind]),
    ...endpoint,
  }
}
