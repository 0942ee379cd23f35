import type {
  AuthenticatedCaller,
  Claims,
  Clock,
  EpochMs,
  Known,
  McpView,
  Obtain,
  RequestView,
  RuleDecision,
} from '../../core/index.ts'
import type { Decision } from './decision.ts'
import type { RoleChoice } from './role-mapper.ts'
import type { SessionAttributes, Tag } from './session-attributes.ts'
import type { SessionName } from './session-name.ts'

/**
 * A recorded decision. Session name, tags and policy derive from claims, so their values are included only when
 * claims are.
 */
export type ShownDecision = Omit<Decision, 'session' | 'choice'> & {
  readonly session: SessionName | Pick<SessionName, 'changes'> | undefined
  readonly choice: Omit<RoleChoice, 'attributes'> & { readonly attributes?: SessionAttributes | ValuelessAttributes }
}

type ValuelessAttributes = Pick<SessionAttributes, 'writtenPolicy' | 'policyArns' | 'externalId'> & {
  readonly tags: readonly Omit<Tag, 'value'>[]
}

/** A request as rules saw it; arguments only when claim values are shown and they are small. */
export type RecordedRequest = Pick<McpView, 'method' | 'kind' | 'name' | 'uri'> & {
  readonly args?: Claims
  readonly annotations: Claims
}

/** A request and its decisions; the role decision may be older than the request. */
export interface DecisionRecord {
  readonly atMs: EpochMs
  readonly requestId: string
  readonly route: string
  /** The caller's role decision; absent without role mapping. */
  readonly decision?: ShownDecision
  /** The authorization decision; absent on routes without rules. */
  readonly mcp?: RecordedRequest
  readonly rules?: RuleDecision
  /** Only when claim values are shown. */
  readonly claims?: Claims
}

/** The decisions of one route. */
export interface RouteDecisions {
  /** Stores a role decision for the lifetime of the caller object, or of the request that it depends on. */
  remember(caller: AuthenticatedCaller, decision: Decision, view?: RequestView): void
  /** Records what the rules of the route decided on a request. */
  authorized(known: Known, mcp: McpView, rules: RuleDecision): void
  /** Wraps the stage `obtain` to record each request with its caller's decision. */
  recording<O extends Obtain>(obtain: O): O
}

export interface DecisionLog {
  forRoute(route: string): RouteDecisions
  /** The last requests, newest first. */
  list(): readonly DecisionRecord[]
  /** The record of one request, while it is among the last. */
  of(requestId: string): DecisionRecord | undefined
}

export interface DecisionLogOptions {
  readonly clock: Clock
  /** Default 200. */
  readonly capacity?: number
  /** Records claims and session name too; the trace is always recorded. Default false. */
  readonly showClaims?: boolean
}

const withoutValues = ({ tags, writtenPolicy, policyArns, externalId }: SessionAttributes): ValuelessAttributes => ({
  tags: tags.map(({ key, transitive }) => ({ key, transitive })),
  writtenPolicy,
  policyArns,
  externalId,
})

/** Records of other requests between the two decisions of one; after more, it has two records. */
const CONCURRENT = 64

/** Maximum recorded characters of names, and of arguments as JSON. */
const SHOWN_CHARACTERS = 1024
const SHOWN_ARGUMENTS = 16 * 1024

/** A ring buffer of the last requests and decisions, for `GET /decisions` of the admin listener. */
export function createDecisionLog({ clock, capacity = 200, showClaims = false }: DecisionLogOptions): DecisionLog {
  const ring: DecisionRecord[] = []
  let next = 0

  /** Usually the newest is requested. A `Map` or `WeakMap` by request would cost each request a microsecond. */
  const newest = (requestId: string, most = capacity): DecisionRecord | undefined => {
    for (let back = 1; back <= Math.min(ring.length, most); back++) {
      const record = ring[(next - back + ring.length) % ring.length]
      if (record?.requestId === requestId) return record
    }
    return undefined
  }

  const shown = (decision: Decision): ShownDecision => {
    if (showClaims) return decision
    const { session, choice } = decision
    const { attributes, ...rest } = choice
    return {
      ...decision,
      session: session === undefined ? undefined : { changes: session.changes },
      choice: attributes === undefined ? rest : { ...rest, attributes: withoutValues(attributes) },
    }
  }

  /** One record per request, completed by its two decisions. */
  const record = (route: string, known: Known, part: Pick<DecisionRecord, 'decision' | 'mcp' | 'rules'>) => {
    const { matched, caller } = known
    const { id } = matched.inbound
    const begun = newest(id, CONCURRENT)
    if (begun !== undefined) {
      Object.assign(begun, part)
      return
    }
    const claims = showClaims && caller.kind === 'authenticated' ? { claims: caller.claims } : {}
    const made = { atMs: clock.now(), requestId: id, route, ...part, ...claims }
    ring[next] = made
    next = (next + 1) % capacity
  }

  const requestOf = ({ method, kind, name, uri, args, annotations }: McpView): RecordedRequest => ({
    method: method.slice(0, SHOWN_CHARACTERS),
    kind,
    name: name.slice(0, SHOWN_CHARACTERS),
    uri: uri.slice(0, SHOWN_CHARACTERS),
    annotations,
    ...(showClaims && JSON.stringify(args).length <= SHOWN_ARGUMENTS ? { args } : {}),
  })

  return {
    forRoute(route) {
      const decisions = new WeakMap<AuthenticatedCaller | RequestView, ShownDecision>()
      return {
        remember: (caller, decision, view) => void decisions.set(view ?? caller, shown(decision)),
        authorized: (known, mcp, rules) => record(route, known, { mcp: requestOf(mcp), rules }),
        recording: (obtain) => ({
          ...obtain,
          obtain(known) {
            try {
              return obtain.obtain(known)
            } finally {
              // Afterwards: a caller's first request makes the decision, and rejections are recorded too.
              const { view } = known.matched
              const ofRequest = view && decisions.get(view)
              const decision =
                ofRequest ?? (known.caller.kind === 'authenticated' ? decisions.get(known.caller) : undefined)
              if (decision !== undefined) record(route, known, { decision })
            }
          },
        }),
      }
    },
    of: (requestId) => newest(requestId),
    list: () => [...ring.slice(next), ...ring.slice(0, next)].toReversed(),
  }
}
