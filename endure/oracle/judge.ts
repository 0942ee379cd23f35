import { type Call, CALL_HEADER, type Outcome, type Expectation } from './call.ts'
import { excusesCut, excusesRefusal, type FaultSpan, goodAgainAt, mayMeetRevoked, unwell } from './excuses.ts'
import type { FindingKind } from './findings.ts'

/** The problem of a response; undefined: none. */
export type Verdict = readonly [kind: FindingKind, what: string] | undefined

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly progressToken?: unknown; readonly progress?: number }
  readonly result?: {
    readonly content?: readonly { readonly text?: string }[]
    readonly isError?: boolean
    readonly inputRequests?: Readonly<Record<string, { readonly params?: { readonly url?: string } }>>
    readonly requestState?: string
    readonly structuredContent?: { readonly headers?: readonly string[] }
  }
  readonly error?: { readonly message?: string; readonly data?: { readonly reason?: string } }
}

/** The longest that is asked for are a stream of 20 s and twelve steps of 0.8 s; the rest is for a machine without time. */
const LONGEST_MS = 40_000
/** Longest wait of callers that left before the head of a response; heads of streams are immediate, too. */
const LONGEST_TO_HEAD_MS = 10_000

/** Checks the response to a call, given the faults of the run. */
export function judge(call: Call, outcome: Outcome, spans: readonly FaultSpan[]): Verdict {
  const parts = unwell(spans, call.needs, call.startedAt, outcome.endedAt)
  const where = `${call.caller} at ${call.route} (${call.id})`
  const tookMs = outcome.endedAt - call.startedAt
  if (outcome.cut !== undefined) {
    if (excusesCut(parts, tookMs, outcome.status > 0)) return undefined
    return ['answer cut without a reason', `${where}: ${outcome.cut} after status ${outcome.status}`]
  }
  if (parts.length === 0 && tookMs > (outcome.status === 0 ? LONGEST_TO_HEAD_MS : LONGEST_MS))
    return ['late answer', `${where}: ${outcome.status} after ${Math.round(tookMs / 1_000)} s`]
  if (outcome.status >= 400) {
    // A backend's rejection of a credential has no reason of the proxy.
    const isOfBackend = [401, 403].includes(outcome.status) && reasonOf(outcome.text) === ''
    if (isOfBackend && mayMeetRevoked(spans, call.callerSince, call.startedAt)) return undefined
    return judgeRefusal(call, outcome, parts, where)
  }
  if (call.refusal !== undefined && mayBeServedBy(call, outcome.endedAt, spans) === undefined)
    return ['served who must be refused', `${where}: ${outcome.status}, not ${call.refusal.join(' or ')}`]
  return judgeContent(call, outcome, where)
}

/** The replica, and no other, that may serve who must be refused elsewhere, up to now: its clock was set back. */
export const mayBeServedBy = (call: Call, until: number, spans: readonly FaultSpan[]): string | undefined =>
  call.tokenEndedAt === undefined ? undefined : goodAgainAt(spans, call.tokenEndedAt, call.startedAt, until)

/** The stable reason of a refusal, of MCP or of OAuth; empty where there is none. */
export function reasonOf(text: string): string {
  const body = parsed(text) as { error?: { data?: { reason?: string } } | string } | undefined
  if (typeof body?.error === 'string') return body.error
  return body?.error?.data?.reason ?? ''
}

function judgeRefusal(call: Call, outcome: Outcome, parts: ReturnType<typeof unwell>, where: string): Verdict {
  const { status, text } = outcome
  const reason = reasonOf(text)
  const asked = call.expectation.kind === 'refusal' ? call.expectation.reasons : call.refusal
  const isAsked = asked?.includes(`${status} ${reason}`) === true
  const isEnded = call.endsSession === true && status === 404 && parts.includes('backend')
  if (!isAsked && !isEnded && !excusesRefusal(parts, status, reason))
    return [
      'refused without a reason',
      `${where}: ${status} ${reason} ${reason === '' ? text.slice(0, 120) : ''}`.trim(),
    ]
  if (status === 503 && !/^\d{1,5}$/.test(String(outcome.headers['retry-after'])))
    return ['refusal without Retry-After', `${where}: 503 ${reason}`]
  return undefined
}

function judgeContent(call: Call, outcome: Outcome, where: string): Verdict {
  if (call.expectation.kind === 'anything') return undefined
  if (call.expectation.kind === 'refusal')
    return ["another caller's answer", `${where}: ${outcome.status}, not ${call.expectation.reasons.join(' or ')}`]
  if (call.expectation.kind === 'servers') {
    const { servers = [] } = (parsed(outcome.text) ?? {}) as { servers?: readonly { server?: { name?: string } }[] }
    const names = servers.map(({ server }) => server?.name)
    if (names.join() === call.expectation.names.join()) return undefined
    return ['torn answer that looks whole', `${where}: ${names.length} of ${call.expectation.names.length} servers`]
  }
  const messages = messagesOf(outcome)
  const last = messages?.at(-1)
  if (messages === undefined || last === undefined || (last.result === undefined && last.error === undefined))
    return ['torn answer that looks whole', `${where}: ${outcome.text.length} characters`]
  const foreign = messages.find(
    ({ id, params }) =>
      (id !== undefined && id !== call.id) || (params?.progressToken !== undefined && params.progressToken !== call.id),
  )
  if (foreign !== undefined) return ["another caller's answer", `${where}: an answer for ${String(foreign.id)}`]
  if (call.expectation.kind === 'prompt' && promptIn(outcome) !== undefined) return undefined
  if (last.error !== undefined)
    return [
      'refused without a reason',
      `${where}: an error of the backend, ${String(last.error.message).slice(0, 120)}`,
    ]
  return judgeExpectation(call, call.expectation, messages, last, where)
}

const LINK = /https?:[^\s"]+\/connect\/[\w-]{32}(?=[\s"]|$)/

/** The prompt in an answer: the link for connecting an account, and the state of the request; undefined: there is none. */
export function promptIn(outcome: Outcome): { readonly link: string; readonly state: string | undefined } | undefined {
  const { result } = messagesOf(outcome)?.at(-1) ?? {}
  const [asked] = Object.values(result?.inputRequests ?? {})
  const text = asked?.params?.url ?? (result?.isError === true ? result.content?.[0]?.text : undefined)
  const link = LINK.exec(text ?? '')?.[0]
  return link === undefined ? undefined : { link, state: result?.requestState }
}

function judgeExpectation(
  call: Call,
  expectation: Expectation,
  messages: readonly Message[],
  last: Message,
  where: string,
): Verdict {
  const text = last.result?.content?.[0]?.text ?? ''
  switch (expectation.kind) {
    case 'prompt':
      // An own request has been compared at the backend.
      return expectation.orServed && last.result?.isError !== true && last.result?.inputRequests === undefined
        ? judgeExpectation(call, { kind: 'own request' }, messages, last, where)
        : ['served who must be refused', `${where}: no link for connecting an account in ${text.slice(0, 80)}`]
    case 'own request': {
      const ids = (last.result?.structuredContent?.headers ?? [])
        .map((line) => line.split(': '))
        .filter(([name]) => name?.toLowerCase() === CALL_HEADER)
        .map(([, value]) => value)
      if (ids.length === 1 && ids[0] === call.id) return undefined
      return ["another caller's answer", `${where}: the request of ${ids.join(', ') || 'no caller'}`]
    }
    case 'text':
      return text === expectation.text ? undefined : ["another caller's answer", `${where}: ${text.slice(0, 80)}`]
    case 'bytes':
      if (
        text.length === expectation.bytes &&
        text === '0123456789abcdef'.repeat(Math.ceil(expectation.bytes / 16)).slice(0, expectation.bytes)
      )
        return undefined
      return ['torn answer that looks whole', `${where}: ${text.length} of ${expectation.bytes} bytes`]
    case 'steps': {
      const steps = messages.flatMap(({ params }) => params?.progress ?? [])
      const isWhole = steps.length === expectation.steps && steps.every((step, index) => step === index + 1)
      return isWhole
        ? undefined
        : ['torn answer that looks whole', `${where}: steps ${steps.join(' ')} of ${expectation.steps}`]
    }
    default:
      return undefined
  }
}

/** The messages of an answer, as JSON or as an event stream; undefined when one of them is none. */
function messagesOf({ headers, text }: Outcome): readonly Message[] | undefined {
  if (String(headers['content-type']).startsWith('text/event-stream')) {
    // Only what a blank line ends is an event (HTML, 9.2.6).
    const events = text.replaceAll('\r\n', '\n').split('\n\n').slice(0, -1)
    const data = events.map((event) =>
      event
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n'),
    )
    const messages = data.filter((one) => one !== '').map(parsed)
    return messages.every((message) => message !== undefined) ? (messages as Message[]) : undefined
  }
  const message = parsed(text)
  return message === undefined ? undefined : ([message].flat() as Message[])
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
