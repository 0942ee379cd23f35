import { type Clock, type Metrics, MONOTONIC_CLOCK, type MonotonicClock } from '../core/index.ts'
import { type BreakerState, CLOSED } from './circuit.ts'
import { createProtection, type Protect, type ProtectionOptions } from './protection.ts'

/** Breaker and concurrency limit of a service, for one of its clients. */
export interface SharedProtection {
  readonly protect: Protect
  /** Call once when the client closes. The last call discards the state. */
  readonly release: () => void
}

/** A client of a service. */
export interface ServiceClient {
  /** Name of the service in metrics. */
  readonly name: string
  /** Called when the circuit closes. */
  readonly onRecovered: (() => void) | undefined
}

type Settings = Omit<ProtectionOptions, 'clock' | 'monotonicClock' | 'onState'>

/** Breakers and concurrency limits, one per service. */
export interface Protections {
  /** Returns the protection of `service`, created with these settings on first use. */
  share(service: string, client: ServiceClient, settings: Settings): SharedProtection
}

interface Entry {
  readonly protect: Protect
  readonly clients: Set<ServiceClient>
  state: BreakerState
}

/** Creates the protections of a process. The gauge has the worst state of all services with the same name. */
export function createProtections(options: {
  readonly clock: Clock
  readonly monotonicClock?: MonotonicClock | undefined
  readonly metrics: Metrics | undefined
}): Protections {
  const { clock, monotonicClock = MONOTONIC_CLOCK, metrics } = options
  const gauge = metrics?.gauge(
    'extauth_breaker_state',
    'Circuit breaker per service: 0 closed, 1 open, 2 probing.',
    ['name'],
    'max',
  )
  const entries = new Map<string, Entry>()

  const publish = (clients: Iterable<ServiceClient>): void => {
    for (const name of new Set([...clients].map((client) => client.name))) {
      const named = [...entries.values()].filter((entry) => [...entry.clients].some((client) => client.name === name))
      gauge?.with(name).set(Math.max(CLOSED, ...named.map(({ state }) => state)))
    }
  }

  const open = (settings: Settings): Entry => {
    const onState = (state: BreakerState): void => {
      entry.state = state
      publish(entry.clients)
      if (state === CLOSED) for (const client of entry.clients) client.onRecovered?.()
    }
    const entry: Entry = {
      protect: createProtection({ ...settings, clock, monotonicClock, onState }),
      clients: new Set(),
      state: CLOSED,
    }
    return entry
  }

  return {
    share(service, given, settings) {
      const entry = entries.get(service) ?? open(settings)
      entries.set(service, entry)
      const client = { ...given }
      entry.clients.add(client)
      publish([client])
      return {
        protect: entry.protect,
        release() {
          entry.clients.delete(client)
          if (entry.clients.size === 0) entries.delete(service)
          publish([client])
        },
      }
    },
  }
}
