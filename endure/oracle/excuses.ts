/** A part that a request may need, and that a fault may break. */
export const PARTS = [
  'provider',
  'introspection',
  'own token',
  'sts',
  'own keys',
  'hub keys',
  'workspace',
  'backend',
  'store',
  'replica',
  'drain',
  'own server',
  'pause',
  'descriptors',
  'clock',
] as const
export type Part = (typeof PARTS)[number]

/** A replica whose clock is off; below 0 it was set back. */
export interface MovedClock {
  readonly replica: string
  readonly byMs: number
}

/** A fault as it happened: from when to when these parts were not well, in milliseconds of `performance.now()`. */
export interface FaultSpan {
  readonly name: string
  readonly parts: readonly Part[]
  readonly clock?: MovedClock | undefined
  readonly from: number
  /** Undefined while it is on. */
  until: number | undefined
}

interface Excuse {
  /** `status reason` that the product may answer with. */
  readonly refusals: readonly string[]
  /** Whether an answer may be cut, or a connection lost; `late`: only one that has had its time (`--drain-grace`), or no head. */
  readonly cut: boolean | 'late'
  /** How long after the fault, in milliseconds: the product promises service 2 s after a service is well. */
  readonly graceMs: number
}

const UNAVAILABLE = ['503 identity_provider_unavailable', '502 identity_provider_error', '502 exchange_failed']

/** Failures that a broken part excuses, after `docs/errors.md`; no others. */
export const EXCUSES: Readonly<Record<Part, Excuse>> = {
  provider: { refusals: UNAVAILABLE, cut: false, graceMs: 6_000 },
  introspection: { refusals: UNAVAILABLE, cut: false, graceMs: 6_000 },
  // A token of the proxy itself, which ends while its endpoint refuses the proxy's own client, and no other.
  'own token': {
    refusals: ['503 identity_provider_unavailable', '502 backend_rejected_credential'],
    cut: false,
    graceMs: 8_000,
  },
  // Keys that all callers share are renewed for the second one that they are refused with, when they are younger than a minute.
  'own keys': { refusals: ['403 '], cut: false, graceMs: 6_000 },
  // Those that STS itself refuses are renewed at once, unless they were a second ago.
  'hub keys': { refusals: ['503 aws_identity_unavailable'], cut: false, graceMs: 6_000 },
  sts: {
    refusals: ['503 sts_unavailable', '503 sts_throttled', '502 sts_failed', '503 aws_identity_unavailable'],
    cut: false,
    graceMs: 6_000,
  },
  // A refresh whose answer is lost ends the session at a provider whose refresh tokens are good once: the user logs in again.
  workspace: { refusals: [...UNAVAILABLE, '401 no_session'], cut: false, graceMs: 6_000 },
  // A retry after a lost connection is not followed by one for a withdrawn key (decisions §4).
  backend: {
    refusals: [
      '502 backend_unreachable',
      '502 backend_no_answer',
      '504 backend_timeout',
      '502 backend_error',
      '502 backend_rejected_credential',
    ],
    cut: true,
    graceMs: 3_000,
  },
  store: { refusals: ['503 store_unavailable'], cut: false, graceMs: 8_000 },
  replica: { refusals: ['503 draining'], cut: true, graceMs: 2_000 },
  // A connection may be closed while a request is on its way to it. An answer that has begun is not cut short.
  drain: { refusals: ['503 draining'], cut: 'late', graceMs: 2_000 },
  // Where the proxy's own authorization server is the backend's as well, it is a provider like any other.
  'own server': { refusals: UNAVAILABLE, cut: false, graceMs: 6_000 },
  // A process that stood still finds all its deadlines over when it goes on, and kept connections that the backend has ended.
  pause: {
    refusals: [
      ...UNAVAILABLE,
      '503 sts_unavailable',
      '504 backend_timeout',
      '502 backend_unreachable',
      '502 backend_no_answer',
      '503 store_unavailable',
    ],
    cut: true,
    graceMs: 6_000,
  },
  descriptors: {
    refusals: [
      ...UNAVAILABLE,
      '503 sts_unavailable',
      '503 aws_identity_unavailable',
      '502 backend_unreachable',
      '502 backend_no_answer',
      '503 store_unavailable',
    ],
    cut: true,
    graceMs: 4_000,
  },
  // A rejection due to a wrong clock stays cached for ten seconds.
  // An assertion (`xaa`) that the replica's own authorization server gets is then over, or not good yet; and
  // keys that live a minute have expired when they arrive, or are taken for good when they have.
  clock: {
    refusals: [
      '401 invalid_token',
      '401 expired_token',
      '401 no_session',
      '403 exchange_denied',
      '503 aws_identity_unavailable',
      '502 sts_failed',
    ],
    cut: false,
    graceMs: 12_000,
  },
}

/** The faults of a run. */
export interface FaultLog {
  begin(name: string, parts: readonly Part[], clock?: MovedClock): FaultSpan
  end(span: FaultSpan): void
  /** Adds a fault that has ended. */
  add(span: FaultSpan): void
  readonly spans: readonly FaultSpan[]
  /** Names of those that are on, or ended less than their grace ago. */
  names(): readonly string[]
}

export function createFaultLog(now: () => number = () => performance.now()): FaultLog {
  const spans: FaultSpan[] = []
  return {
    begin(name, parts, clock) {
      const span: FaultSpan = { name, parts, clock, from: now(), until: undefined }
      spans.push(span)
      return span
    },
    add: (span) => void spans.push(span),
    end: (span) => void (span.until ??= now()),
    spans,
    names: () => {
      const fresh = spans.filter((span) => span.parts.some((part) => touches(span, part, now(), now())))
      return [...new Set(fresh.map(({ name }) => name))]
    },
  }
}

/** Whether a part was not well at some time between two moments, or had not been for less than its grace. */
function touches(span: FaultSpan, part: Part, from: number, until: number): boolean {
  if (!span.parts.includes(part)) return false
  return span.from <= until && (span.until === undefined || span.until + EXCUSES[part].graceMs >= from)
}

const MOST_GRACE_MS = Math.max(...Object.values(EXCUSES).map(({ graceMs }) => graceMs))

/** The parts that were not well during a request that needs them. */
export function unwell(
  spans: readonly FaultSpan[],
  needs: readonly Part[],
  from: number,
  until: number,
): readonly Part[] {
  // Most were over long ago.
  const near = spans.filter((span) => span.from <= until && (span.until ?? until) + MOST_GRACE_MS >= from)
  return needs.filter((part) => near.some((span) => touches(span, part, from, until)))
}

/** Whether a refusal is excused by one of the parts. */
export const excusesRefusal = (parts: readonly Part[], status: number, reason: string): boolean =>
  parts.some((part) => EXCUSES[part].refusals.includes(`${status} ${reason}`))

/** With a second less than the replicas are given, for clocks that do not start together. */
const DRAIN_MS = 4_000

/** Whether an answer may be cut because of one of the parts, so long after its request; `hasBegun`: its head had come. */
export const excusesCut = (parts: readonly Part[], tookMs: number, hasBegun: boolean): boolean =>
  parts.some((part) => (EXCUSES[part].cut === 'late' ? !hasBegun || tookMs >= DRAIN_MS : EXCUSES[part].cut))

/** Word in the names of faults that take back what was issued. */
const TAKES_BACK = 'takes back'
/** Replicas trust what another made so long before a refusal: their clocks may differ by that. */
const TRUSTED_MS = 5_000
const REVOKED_GRACE_MS = 2_000

/**
 * Whether a caller was so new when credentials were revoked that each replica may have had one of its own, and the one that
 * a replica finds in place of its own is of before, too. All others must not notice.
 */
export const mayMeetRevoked = (spans: readonly FaultSpan[], callerSince: number, startedAt: number): boolean =>
  spans.some(
    ({ name, from, until = Infinity }) =>
      name.includes(TAKES_BACK) && callerSince > from - TRUSTED_MS && startedAt < until + REVOKED_GRACE_MS,
  )

/** A token with a later `iat` is not valid yet: the product's default. */
const EARLY_MS = 30_000

/** Whether a replica may have issued a token with a time at which the others refuse it: its clock was ahead meanwhile. */
export const mayBeIssuedEarly = (spans: readonly FaultSpan[], from: number, until: number): boolean =>
  spans.some(({ clock, ...on }) => (clock?.byMs ?? 0) > EARLY_MS && on.from <= until && (on.until ?? until) >= from)

/** How long after its end a token is taken, for clocks that go differently: the product's default. */
const TOLERATED_MS = 5_000

/**
 * The replica at which a token that has ended was good again at some time between two moments, because its clock had been set
 * back by more than that; undefined: none. Right for that replica, for no other, and without any grace.
 */
export function goodAgainAt(
  spans: readonly FaultSpan[],
  endedAt: number,
  from: number,
  until: number,
): string | undefined {
  const span = spans.find(({ clock, ...on }) => {
    const isOn = clock !== undefined && on.from <= until && (on.until ?? until) >= from
    return isOn && Math.max(on.from, from) + clock.byMs < endedAt + TOLERATED_MS
  })
  return span?.clock?.replica
}
