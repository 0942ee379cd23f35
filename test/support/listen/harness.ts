import type { ClientRequest, ClientResponse } from '../../../src/core/index.ts'
import { openListener, parseListenAddress, type Listener, type ListenerOptions } from '../../../src/listen/index.ts'
import {
  createManualClock,
  createRecordingLog,
  createRecordingMetrics,
  type ManualClock,
  monotonicOf,
  type RecordingLog,
  type RecordingMetrics,
} from '../ports.ts'
import type { Sockets } from '../sockets.ts'

export interface Started extends Listener {
  readonly clock: ManualClock
  readonly log: RecordingLog
  readonly metrics: RecordingMetrics
  /** Method and target of each request that was served, in order. */
  readonly served: string[]
}

/** A listener on a free loopback port; what is refused says its code. */
export async function startListener(
  sockets: Sockets,
  serve: (request: ClientRequest, response: ClientResponse) => void,
  options: Partial<ListenerOptions<unknown>> = {},
): Promise<Started> {
  const clock = createManualClock()
  const log = createRecordingLog()
  const metrics = createRecordingMetrics()
  const served: string[] = []
  const listener = await openListener({
    address: parseListenAddress('127.0.0.1:0'),
    headerLimitBytes: 16 * 1024,
    serve(request: ClientRequest, response: ClientResponse) {
      served.push(`${request.method} ${request.url}`)
      serve(request, response)
    },
    refusal: ({ code }) => ({ headers: {}, body: code }),
    monotonicClock: monotonicOf(clock),
    log,
    metrics,
    ...options,
  })
  sockets.closing(listener)
  return { ...listener, clock, log, metrics, served }
}

/** Lets time pass while the listener looks at its connections, until `isOver`. */
export async function passTime(clock: ManualClock, stepMs: number, isOver: () => boolean): Promise<void> {
  for (let step = 0; step < 100 && !isOver(); step++) {
    clock.advance(stepMs)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export const get = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`
export const post = (target: string, body: string): string =>
  `POST ${target} HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`
