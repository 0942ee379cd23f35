import {
  type Clock,
  type Hold,
  type Log,
  type Outbound,
  RefCountedPool,
  type RequestObserver,
} from '../../core/index.ts'
import { createCertificatePair } from '../../oauth/index.ts'
import type { ObtainDeps } from '../../obtain/index.ts'
import { canonicalJson, type ResolvedRoute, type ResolvedTelemetry } from '../../resources/index.ts'
import type * as telemetryModule from '../../telemetry/index.ts'
import type { SpanTarget, Telemetry, TraceSettings } from '../../telemetry/index.ts'
import type { Materials } from '../materials.ts'
import { traceSettings } from '../trace-settings.ts'
import { VERSION } from '../version.ts'

/** Clients and files for trace receivers that documents configure. */
export interface ReceiverDeps {
  readonly outbound: ObtainDeps['outbound']
  readonly materials: Materials
  readonly log: Log
}

/** The trace receivers of one configuration. */
export interface HeldReceivers {
  /** Starts tracing its routes. */
  activate(): void
  release(): Promise<void>
}

/** Traces of a process: for the receiver of the environment and for those of documents. */
export interface Tracing {
  readonly observer: RequestObserver
  /** Starts tracing for the receiver of the process. */
  own(telemetry: Telemetry): void
  /** Returns a client whose requests become child spans of the request that caused them. */
  traced(outbound: Outbound, service: string): Outbound
  /** Opens each receiver of these routes once; receivers of another configuration stay open. */
  hold(routes: readonly ResolvedRoute[], deps: ReceiverDeps, module: typeof telemetryModule | undefined): HeldReceivers
}

const NO_RECEIVERS: HeldReceivers = { activate() {}, release: () => Promise.resolve() }

/**
 * Creates the tracing of a process. `isOff` disables all traces (`OTEL_SDK_DISABLED`). OpenTelemetry is loaded only if the
 * environment or a document configures a receiver.
 */
export function createTracing(isOff: boolean): Tracing {
  const pool = new RefCountedPool<SpanTarget>((target) => target.close())
  let current: Telemetry | undefined
  return {
    observer: { arrived: (inbound) => current?.observer.arrived(inbound) },
    own: (telemetry) => void (current = telemetry),
    traced(outbound, service) {
      let known: { readonly by: Telemetry; readonly client: Outbound } | undefined
      return {
        request(request) {
          if (current === undefined) return outbound.request(request)
          if (known?.by !== current) known = { by: current, client: current.traced(outbound, service) }
          return known.client.request(request)
        },
        close: () => outbound.close(),
      }
    },
    hold(routes, deps, module) {
      const named = routes.flatMap(({ name, telemetry }) => (telemetry === undefined ? [] : [{ name, telemetry }]))
      if (named.length === 0 || module === undefined || isOff) {
        return { ...NO_RECEIVERS, activate: () => current?.use(new Map()) }
      }
      const held: Hold<SpanTarget> = pool.hold()
      const targets = new Map(
        named.map(({ name, telemetry }) => [
          name,
          held.get(canonicalJson(telemetry), () => openNamed(telemetry, deps, module)),
        ]),
      )
      return {
        activate: () => (current ??= module.createTelemetry(undefined)).use(targets),
        release: () => held.release(),
      }
    },
  }
}

const DEADLINE_MS = 10_000
/** Responses of receivers are limited to 64 KiB; each export is retried once. */
const EXPORT = { maxBytes: 64 * 1024, retry: true }

/** Returns a client that also releases `hold` when closed. */
const releasing = (client: Outbound, hold: { release(): void }): Outbound => ({
  request: client.request.bind(client),
  async close() {
    await client.close()
    hold.release()
  },
})

/** Opens the client of a receiver: 10 s deadline, 64 KiB, one retry. */
export function openReceiverClient(
  { name, url, caCertPath, secretHeaders }: ResolvedTelemetry,
  { outbound, materials }: Pick<ReceiverDeps, 'outbound' | 'materials'>,
) {
  const held = materials.hold()
  const client = outbound({
    ...EXPORT,
    name,
    service: JSON.stringify(['traces', url, caCertPath ?? '']),
    deadlineMs: DEADLINE_MS,
    ...(caCertPath === undefined ? {} : { caCert: held.certificate(caCertPath) }),
  })
  return {
    secretHeaders: secretHeaders.map(({ name: header, ref }) => ({ name: header, value: held.secrets.handle(ref) })),
    outbound: releasing(client, held),
  }
}

/** Holds its own secrets and files, as it may outlive the configuration that opened it. */
const openNamed = (telemetry: ResolvedTelemetry, deps: ReceiverDeps, module: typeof telemetryModule): SpanTarget =>
  module.openReceiver({
    ...telemetry,
    ...openReceiverClient(telemetry, deps),
    log: deps.log,
    version: VERSION,
  })

/**
 * Opens the client of the process receiver, with the deadline and files of the environment.
 */
function openProcessReceiverClient(
  { url, timeoutMs, files }: Pick<TraceSettings, 'url' | 'timeoutMs' | 'files'>,
  { outbound, materials, clock }: Pick<ReceiverDeps, 'outbound' | 'materials'> & { readonly clock: Clock },
): Outbound {
  const held = materials.hold()
  const pair =
    files.client === undefined
      ? undefined
      : createCertificatePair(held.pem(files.client.certificate), held.pem(files.client.key), clock)
  const client = outbound({
    ...EXPORT,
    name: 'traces',
    service: JSON.stringify(['traces', url]),
    deadlineMs: timeoutMs,
    ...(files.ca === undefined ? {} : { caCert: held.certificate(files.ca) }),
    ...(pair === undefined ? {} : { clientCertificate: () => pair.current() }),
  })
  return releasing(client, held)
}

/** Opens the trace receiver of the environment, if any. Throws `ConfigError`. */
export async function openTraces(
  env: Readonly<Record<string, string | undefined>>,
  tracing: Tracing,
  deps: ReceiverDeps & { readonly clock: Clock },
  stack: AsyncDisposableStack,
): Promise<void> {
  const settings = traceSettings(env)
  if (settings === undefined) return
  const { createTelemetry, openProcessReceiver } = await import('../../telemetry/index.ts')
  const outbound = openProcessReceiverClient(settings, deps)
  tracing.own(
    createTelemetry(
      stack.adopt(openProcessReceiver(settings, { outbound, log: deps.log, version: VERSION }), (one) => one.close()),
    ),
  )
}
