import { expect } from 'vitest'
import { eventually } from './control-plane.ts'
import type { Fault, Seen } from './fault-proxy.ts'
import { change, counted, expectConverged, type FaultyOperator, isReady, statusWrites } from './faulty-operator.ts'
import type { Cluster } from './use-cluster.ts'

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Faults of requests other than those of the lease. */
export interface Trouble {
  readonly fault: (request: Seen) => Fault | undefined
  /** It need not be over for the changes to arrive. */
  readonly isHarmless?: boolean
}

const SECONDS = 5
/** Of one verb on one object or collection within the five seconds: from 5 ms or 200 ms on, pauses double. */
const MOST_REQUESTS = 16

/**
 * All requests but those of the lease meet a fault for five seconds, during which things change: the process goes on, readiness
 * tells, nothing is asked for again and again; afterwards all is as it should be, and one edit was one write.
 */
export async function endure(
  { plane, client }: Pick<Cluster, 'plane' | 'client'>,
  operator: FaultyOperator,
  { fault, isHarmless }: Trouble,
): Promise<Seen[]> {
  const { proxy, namespace, running } = operator
  // Changes that a failed try has made already would be none.
  const round = ++operator.round
  const restartsOf = () => operator.metric('extauth_operator_watch_restarts_total')
  const [writes, restarts, from] = [statusWrites(plane, operator), await restartsOf(), proxy.requests.length]
  proxy.fault = (request) => (request.resource === 'leases' ? undefined : fault(request))
  proxy.resetAll()
  await change(client, namespace, round)
  await sleep(SECONDS * 1000)
  const seen = proxy.requests.slice(from)
  expect(Object.entries(counted(seen)).filter(([, count]) => count > MOST_REQUESTS)).toEqual([])
  expect(await restartsOf()).toBeGreaterThan(restarts)
  if (isHarmless !== true) {
    expect(await operator.readiness()).toMatchObject({ status: 503 })
    proxy.fault = () => undefined
  }
  await eventually(() => expectConverged(client, namespace, round), 40_000)
  proxy.fault = () => undefined
  await isReady(operator)
  expect(statusWrites(plane, operator) - writes).toBe(1)
  expect(running.process.exitCode).toBeNull()
  return seen
}

/** An answer of the API server that is no success. */
export const answer = (status: number, reason: string, headers: Record<string, string> = {}): Fault => ({
  do: 'answer',
  status,
  headers,
  body: JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason, code: status }),
})
/** A line of a watch. */
export const line = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`
/** Watches (of one resource) are taken and say this. */
export const inWatches =
  (text: string | Buffer, ending: 'reset' | 'end' | 'go on', resource?: string) =>
  ({ verb, ...request }: Seen): Fault | undefined =>
    verb === 'watch' && (resource === undefined || resource === request.resource)
      ? { do: 'say', text, ending }
      : undefined

/** From when a request of one is answered until one of another, sent before that was known, has come on a busy machine. */
const UNDER_WAY_MS = 1500

/**
 * What came less than `seconds` after the server had asked to be left alone with its kind: another request of the same one, or
 * any one that cannot have been under way.
 */
export function tooSoon(requests: readonly Seen[], seconds: number): string[] {
  const rests = new Map<string, { readonly beganMs: number; readonly asked: Set<string> }>()
  return requests.flatMap(({ verb, resource, name, query, atMs, status, answeredMs = atMs }) => {
    const kind = `${verb} ${resource}`
    // Two may follow one collection, each a part of it.
    const one = `${name} ${query.get('labelSelector') ?? ''}`
    const rest = rests.get(kind)
    if (rest === undefined || atMs >= rest.beganMs + seconds * 1000) {
      if (status === 429) rests.set(kind, { beganMs: answeredMs, asked: new Set([one]) })
      return []
    }
    const afterMs = atMs - rest.beganMs
    const isAgain = rest.asked.has(one)
    rest.asked.add(one)
    return isAgain || afterMs > UNDER_WAY_MS ? [`${kind} ${one} after ${Math.round(afterMs)} ms`] : []
  })
}
