import { createHash } from 'node:crypto'
import { CALL_HEADER, type Call, type Outcome } from './call.ts'
import type { FaultSpan } from './excuses.ts'
import type { Findings } from './findings.ts'
import { mayBeServedBy } from './judge.ts'
import type { Marks } from './marks.ts'

/** A request as it reached the backend. */
export interface Seen {
  readonly method: string
  readonly mount: string
  readonly headers: readonly string[]
  readonly body: Buffer
  /** Undefined: the backend refused it, and nothing was done. */
  readonly verified: Readonly<Record<string, unknown>> | undefined
}

/** Stands at the backend: knows what each call must look like there, and how often it came. */
export interface Witness {
  /** Before the request is sent. */
  expect(call: Call): void
  /** A request has reached the backend. */
  see(seen: Seen): void
  /** The answer has come, or will not. */
  settle(call: Call, outcome: Outcome): void
  /** Forgets calls that were settled before a moment of `performance.now()`; a later arrival is reported as doubled. */
  forget(before: number): void
  readonly open: number
}

interface Entry {
  readonly call: Call
  done: number
  settledAt: number
}

const CREDENTIAL_HEADERS = new Set(['authorization', 'x-api-key', 'x-amz-security-token'])
/** Only the signature of a signed request is secret; the rest of the header is protocol text. */
const SIGNED = /^AWS4-HMAC-SHA256 .*Signature=([0-9a-f]+)/

/** @param spans the faults of the run so far */
export function createWitness(
  findings: Pick<Findings, 'add'>,
  marks: Pick<Marks, 'add'>,
  spans: readonly FaultSpan[],
  now: () => number = () => performance.now(),
): Witness {
  const entries = new Map<string, Entry>()
  return {
    expect: (call) => void entries.set(call.id, { call, done: 0, settledAt: Infinity }),
    see(seen) {
      const id = valueOf(seen, CALL_HEADER)
      const entry = entries.get(id ?? '')
      if (entry === undefined)
        return findings.add(
          'doubled unsafe request',
          `${seen.method} ${seen.mount} of call ${id ?? 'without a name'}, long over`,
        )
      for (const credential of credentialsIn(seen)) marks.add(credential, `credential for ${seen.mount}`)
      const { call } = entry
      if (call.refusal !== undefined && seen.verified !== undefined && mayBeServedBy(call, now(), spans) === undefined)
        findings.add('served who must be refused', `${describe(call)}: reached the backend`)
      if (isPromptOnly(call) && seen.verified !== undefined)
        findings.add('served who must be refused', `${describe(call)}: without an account, reached the backend`)
      for (const problem of problemsOf(call, seen)) findings.add(...problem)
      if (seen.verified === undefined || !entry.call.isUnsafe) return
      entry.done += 1
      if (entry.done > 1) findings.add('doubled unsafe request', `${describe(entry.call)}: ${entry.done} times`)
    },
    settle(call, outcome) {
      const entry = entries.get(call.id)
      if (entry === undefined) return
      entry.settledAt = outcome.endedAt
      const isAnswered = outcome.status >= 200 && outcome.status < 300 && outcome.cut === undefined
      if (call.isUnsafe && isAnswered && entry.done === 0)
        findings.add('lost unsafe request', `${describe(call)}: answered, and never arrived`)
    },
    forget(before) {
      for (const [id, { settledAt }] of entries) if (settledAt < before) entries.delete(id)
    },
    get open() {
      return entries.size
    },
  }
}

const isPromptOnly = ({ expectation }: Call): boolean => expectation.kind === 'prompt' && !expectation.orServed

const describe = ({ caller, route, id }: Call): string => `${caller} at ${route} (${id})`

function valueOf({ headers }: Pick<Seen, 'headers'>, name: string): string | undefined {
  const at = headers.findIndex((one, index) => index % 2 === 0 && one.toLowerCase() === name)
  return at === -1 ? undefined : headers[at + 1]
}

const credentialsIn = ({ headers }: Seen): readonly string[] =>
  headers.flatMap((value, at) => {
    if (at % 2 === 0 || !CREDENTIAL_HEADERS.has(headers[at - 1]?.toLowerCase() ?? '')) return []
    return [SIGNED.exec(value)?.[1] ?? value.replace(/^Bearer /i, '')]
  })

function* problemsOf(call: Call, seen: Seen): Generator<Parameters<Findings['add']>> {
  const { expected, token, digest } = call
  const who = describe(call)
  if (seen.mount !== call.route) yield ['wrong credential', `${who}: reached ${seen.mount}`]
  if (token !== undefined && seen.headers.some((value, at) => at % 2 === 1 && value.includes(token)))
    yield ['leaked secret', `${who}: the caller's own token reached the backend`]
  if (!expected.hasCredential && valueOf(seen, 'authorization') !== undefined)
    yield ['wrong credential', `${who}: a credential where none is due`]
  if (expected.header !== undefined && !expected.header.isGood(valueOf(seen, expected.header.name) ?? ''))
    yield ['wrong credential', `${who}: another ${expected.header.name}`]
  if (seen.verified !== undefined)
    for (const [path, wanted] of Object.entries(expected.verified)) {
      const found = memberOf(seen.verified, path)
      if (found !== wanted) yield ['wrong credential', `${who}: ${path} is ${JSON.stringify(found)}, not ${wanted}`]
    }
  if (digest !== undefined && createHash('sha256').update(seen.body).digest('hex') !== digest)
    yield ['other body than was sent', `${who}: ${seen.body.length} bytes`]
}

const memberOf = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], value)
