import type { Call, Outcome } from '../../../endure/oracle/call.ts'

/** A call of a tool that shows its own request, at a route whose backend wants a token of its caller. */
export const callOf = (changes: Partial<Call> = {}): Call => ({
  id: 'c1.0-a',
  caller: 'c1.0',
  route: '/token-exchange',
  needs: ['backend', 'replica', 'pause', 'provider'],
  refusal: undefined,
  isUnsafe: true,
  expected: { verified: { 'claims.sub': 'c1.0' }, hasCredential: true },
  expectation: { kind: 'own request' },
  digest: undefined,
  token: 'eyJh.the-token-of-the-caller.itself',
  callerSince: 1_000,
  startedAt: 1_000,
  ...changes,
})

export const outcomeOf = (changes: Partial<Outcome> = {}): Outcome => ({
  endedAt: 1_100,
  status: 200,
  headers: { 'content-type': 'application/json' },
  text: shownTo('c1.0-a'),
  cut: undefined,
  ...changes,
})

export const result = (id: string, content: object): string => JSON.stringify({ jsonrpc: '2.0', id, result: content })

/** The tool's response with the request of the call `shown`. */
export const shownTo = (id: string, shown = id): string =>
  result(id, { content: [], structuredContent: { headers: ['Host: x', `X-Endure-Call: ${shown}`] } })

export const refusal = (status: number, reason: string, headers: Readonly<Record<string, string>> = {}): Outcome =>
  outcomeOf({ status, headers, text: JSON.stringify({ error: { code: -32000, data: { reason } } }) })

export const events = (...data: readonly string[]): Pick<Outcome, 'headers' | 'text'> => ({
  headers: { 'content-type': 'text/event-stream' },
  text: data.map((one) => `event: message\ndata: ${one}\n\n`).join(''),
})
