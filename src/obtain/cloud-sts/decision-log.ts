import type { AuthenticatedCaller, Claims, Clock, Known, McpView, Obtain, RuleDecision } from '../../core/index.ts'
import type { Decision } from './decision.ts'
import type { RoleChoice } from './role-mapper.ts'
import type { SessionAttributes, Tag } from './session-attributes.ts'
import type { SessionName } from './session-name.ts'

/** A decision as it is shown: session name, tags and policy are made of claims, so their values are there only when claims are. */
export type ShownDecision = Omit<Decision, 'session' | 'choice'> & {
  readonly session: SessionName | Pick<SessionName, 'changes'> | undefined
  readonly choice: Omit<RoleChoice, 'attributes'> & { readonly attributes?: SessionAttributes | ValuelessAttributes }
}

type ValuelessAttributes = Pick<SessionAttributes, 'writtenPolicy' | 'policyArns' | 'externalId'> & {
  readonly tags: readonly Omit<Tag, 'value'>[]
}

/** What a request was about, as rules saw it; the arguments only where claim values are shown and they are not large. */
export type RecordedRequest = Pick<McpView, 'method' | 'kind' | 'name' | 'uri'> & {
  readonly args?: Claims
  readonly annotations: Claims
}

/** One request and what was decided for it; the role decision may be older than the request. */
export interface DecisionRecord {
  readonly atMs: number
  readonly requestId: string
  readonly route: string
  /** The role of the caller; absent where none is chosen. */
  readonly decision?: ShownDecision
  /** What was asked for and which rule decided; absent on routes without rules. */
  readonly mcp?: RecordedRequest
  readonly rules?: RuleDecision
  /** Only when claim values are shown. */
  readonly claims?: Claims
}

/** The decisions of one route. */
export interface RouteDecisions {
  /** What was decided for a caller; kept as long as the caller is. */
  remember(caller: AuthenticatedCaller, decision: Decision): void
  /** Records what the rules of the route decided on a request. */
  authorized(known: Known, mcp: McpView, rules: RuleDecision): void
  /** The stage `obtain`, recording each request with the decision that its caller has. */
  recording<O extends Obtain>(obtain: O): O
}

export interface DecisionLog {
  forRoute(route: string): RouteDecisions
  /** The last requests, newest first. */
  list(): readonly DecisionRecord[]
  /** That of one request, as long as it is among the last. */
  of(requestId: string): DecisionRecord | undefined
}

export interface DecisionLogOptions {
  readonly clock: Clock
  /** Default 200. */
  readonly capacity?: number
  /** Records the claims and the session name too; the trace is there in any case. Default false. */
  readonly showClaims?: boolean
}

const withoutValues = ({ tags, writtenPolicy, policyArns, externalId }: SessionAttributes): ValuelessAttributes => ({
  tags: tags.map(({ key, transitive }) => ({ key, transitive })),
  writtenPolicy,
  policyArns,
  externalId,
})

/** Characters of names, and of arguments as JSON, that a record keeps. */
const SHOWN_CHARACTERS = 1024
const SHOWN_ARGUMENTS = 16 * 1024

/** A ring of the last requests with their decisions, for `GET /decisions` of the admin listener. */
export function createDecisionLog({ clock, capacity = 200, showClaims = false }: DecisionLogOptions): DecisionLog {
  const ring: DecisionRecord[] = []
  let next = 0

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

  /** One record for a request, whose parts are decided one after the other. */
  const recorded = new WeakMap<Known, { decision?: ShownDecision }>()

  const record = (route: string, known: Known, part: Pick<DecisionRecord, 'decision' | 'mcp' | 'rules'>) => {
    const { matched, caller } = known
    const begun = recorded.get(known)
    if (begun !== undefined) {
      Object.assign(begun, part)
      return
    }
    const claims = showClaims && caller.kind === 'authenticated' ? { claims: caller.claims } : {}
    const made = { atMs: clock.now(), requestId: matched.inbound.id, route, ...part, ...claims }
    recorded.set(known, made)
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
      const decisions = new WeakMap<AuthenticatedCaller, ShownDecision>()
      return {
        remember: (caller, decision) => void decisions.set(caller, shown(decision)),
        authorized: (known, mcp, rules) => record(route, known, { mcp: requestOf(mcp), rules }),
        recording: (obtain) => ({
          ...obtain,
          obtain(known) {
            try {
              return obtain.obtain(known)
            } finally {
              // After: the first request of a caller makes the decision, and refusals are recorded as well.
              const decision = known.caller.kind === 'authenticated' ? decisions.get(known.caller) : undefined
              if (decision !== undefined) record(route, known, { decision })
            }
          },
        }),
      }
    },
    of(requestId) {
      // Nearly always asked for the newest.
      for (let back = 1; back <= ring.length; back++) {
        const record = ring[(next - back + ring.length) % ring.length]
        if (record?.requestId === requestId) return record
      }
      return undefined
    },
    list: () => [...ring.slice(next), ...ring.slice(0, next)].toReversed(),
  }
}
