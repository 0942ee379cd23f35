import {
  type AuthenticatedCaller,
  callerIdentity,
  type ClaimValue,
  type Clock,
  type Log,
  type Metrics,
  monotonic,
  type MonotonicClock,
  Secret,
  type SecretHandle,
  type Secrets,
} from '../../src/core/index.ts'
import { showing } from './shown-tokens.ts'
import { createHash } from 'node:crypto'

/** A clock that stands still until it is moved. */
export interface ManualClock extends Clock {
  advance(ms: number): void
}

/** The monotonic clock of a test that moves both clocks at once. */
export const monotonicOf = (clock: Clock): MonotonicClock => ({ now: () => monotonic(clock.now()) })

/** 2027-01-15, a time like any other. */
export const START_MS = 1_800_000_000_000

export function createManualClock(startMs = START_MS): ManualClock {
  let nowMs = startMs
  return {
    now: () => nowMs,
    advance(ms) {
      nowMs += ms
    },
  }
}

/** A log that records lines as the text that would be written. */
export interface RecordingLog extends Log {
  readonly lines: string[]
}

export function createRecordingLog(): RecordingLog {
  const lines: string[] = []
  const write = (level: string) => (fields: object, message: string) => {
    lines.push(JSON.stringify({ level, message, ...fields }))
  }
  return { lines, debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** Metrics whose values can be read: by name and label values. */
export interface RecordingMetrics extends Metrics {
  /** Sum of what was counted, or the gauge's value; 0 when nothing was. */
  value(name: string, ...labels: string[]): number
  readonly names: Set<string>
  /** Everything as text, to look for what must not be there. */
  text(): string
}

export function createRecordingMetrics(): RecordingMetrics {
  const values = new Map<string, number>()
  const names = new Set<string>()
  const keyOf = (name: string, labels: readonly string[]) => [name, ...labels].join('|')
  const declare = (name: string) => {
    names.add(name)
    const bump = (labels: string[], by: number) => {
      const key = keyOf(name, labels)
      values.set(key, (values.get(key) ?? 0) + by)
    }
    return {
      with: (...labels: string[]) => ({
        add: (by = 1) => bump(labels, by),
        set: (value: number) => void values.set(keyOf(name, labels), value),
        observe: () => bump(labels, 1),
      }),
    }
  }
  return {
    counter: declare,
    gauge: declare,
    histogram: declare,
    value: (name, ...labels) => values.get(keyOf(name, labels)) ?? 0,
    names,
    text: () => [...values].map(([key, value]) => `${key} ${value}`).join('\n'),
  }
}

export interface CallerOptions {
  readonly issuer?: string
  readonly subject?: string
  readonly token?: string
  readonly expiresAtMs?: number | undefined
  readonly claims?: Readonly<Record<string, ClaimValue>>
  readonly format?: 'jwt' | 'opaque'
}

/** A caller whose token was accepted; a new object each time. */
export function createCaller(options: CallerOptions = {}): AuthenticatedCaller {
  const token = options.token ?? `token-of-${options.subject ?? 'alice'}`
  const subject = options.subject ?? 'alice'
  const claims = Object.freeze({ sub: subject, scp: 'access_as_user', ...options.claims })
  const tokenDigest = createHash('sha256').update(token).digest('base64url')
  const expiresAtMs = 'expiresAtMs' in options ? options.expiresAtMs : START_MS + 86_400_000
  const caller: AuthenticatedCaller = {
    kind: 'authenticated',
    provider: 'corporate',
    issuer: options.issuer ?? 'https://id.example.com',
    subject,
    claims,
    expiresAtMs,
    identity: callerIdentity(claims, tokenDigest, options.format === 'opaque'),
    tokenDigest,
    format: options.format ?? 'jwt',
  }
  return showing(caller, new Secret(token))
}

/** A secret that a test sets; `undefined` is one that can't be read. */
export interface TestSecret extends SecretHandle {
  set(value: string): void
  /** The result of `refresh`, as if the file had changed unnoticed. */
  pending: string | undefined
}

export function createTestSecrets(
  values: Readonly<Record<string, string>>,
): Secrets & { get(label: string): TestSecret } {
  const handles = new Map<string, TestSecret>()
  const get = (label: string): TestSecret => {
    let value = values[label]
    let version = value === undefined ? 0 : 1
    const known = handles.get(label)
    if (known !== undefined) return known
    const handle: TestSecret = {
      label,
      pending: undefined,
      current() {
        if (value === undefined) throw new Error(`no secret ${label}`)
        return new Secret(value)
      },
      get version() {
        return version
      },
      set(next) {
        value = next
        version += 1
      },
      refresh() {
        if (handle.pending === undefined || handle.pending === value) return Promise.resolve(false)
        handle.set(handle.pending)
        return Promise.resolve(true)
      },
    }
    handles.set(label, handle)
    return handle
  }
  return { get, handle: (ref) => get(`${ref.name}/${ref.key}`) }
}
