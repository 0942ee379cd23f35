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

/** What receivers that documents name are reached with. */
export interface ReceiverDeps {
  readonly outbound: ObtainDeps['outbound']
  readonly materials: Materials
  readonly log: Log
}

/** The receivers of one configuration. */
export interface HeldReceivers {
  /** Its routes are followed for them from now on. */
  adopt(): void
  release(): Promise<void>
}

/** Traces of a process: for a receiver of its own, and for those that its documents name. */
export interface Tracing {
  readonly observer: RequestObserver
  /** Follows requests for the receiver of the process from now on. */
  own(telemetry: Telemetry): void
  /** The same client; its requests are followed as what they are made for is. */
  traced(outbound: Outbound, service: string): Outbound
  /** Opens what these routes name, each once; what another configuration has open stays as it is. */
  hold(routes: readonly ResolvedRoute[], deps: ReceiverDeps, module: typeof telemetryModule | undefined): HeldReceivers
}

const NO_RECEIVERS: HeldReceivers = { adopt() {}, release: () => Promise.resolve() }

/**
 * `isOff`: nothing is sent anywhere, whatever documents say (`OTEL_SDK_DISABLED`). OpenTelemetry is loaded when the
 * environment or a document names a receiver.
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
        return { ...NO_RECEIVERS, adopt: () => current?.use(new Map()) }
      }
      const held: Hold<SpanTarget> = pool.hold()
      const targets = new Map(
        named.map(({ name, telemetry }) => [
          name,
          held.get(canonicalJson(telemetry), () => openNamed(telemetry, deps, module)),
        ]),
      )
      return {
        adopt: () => (current ??= module.createTelemetry(undefined)).use(targets),
        release: () => held.release(),
      }
    },
  }
}

const DEADLINE_MS = 10_000
/** Answers to exports are at most 64 KiB; each export is repeated once. */
const EXPORT = { maxBytes: 64 * 1024, retry: true }

/** The same client; closing it releases what it holds. */
const releasing = (client: Outbound, hold: { release(): void }): Outbound => ({
  request: client.request.bind(client),
  async close() {
    await client.close()
    hold.release()
  },
})

/** How a receiver is reached: 10 s, 64 KiB, one retry. */
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

/** Its secrets and files are its own, as it may outlast the configuration that opened it. */
const openNamed = (telemetry: ResolvedTelemetry, deps: ReceiverDeps, module: typeof telemetryModule): SpanTarget =>
  module.openReceiver({
    ...telemetry,
    ...openReceiverClient(telemetry, deps),
    log: deps.log,
    version: VERSION,
  })

/**
 * How the receiver of the process is reached: as those of documents, with the deadline and the files that the environment
 * names.
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

/** Opens the receiver of traces that the environment names, if any. Throws `ConfigError`. */
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
