import { type Clock, type Metrics, STEADY_CLOCK } from '../core/index.ts'
import { type BreakerState, CLOSED } from './circuit.ts'
import { createProtection, type Protect, type ProtectionOptions } from './protection.ts'

/** Breaker and concurrency bound of a service, as one of its clients has them. */
export interface SharedProtection {
  readonly protect: Protect
  /** To be called once, when the client closes; with the last one the breaker's memory goes. */
  readonly release: () => void
}

/** Who calls a service. */
export interface ServiceClient {
  /** The service's state shows under this name. */
  readonly name: string
  /** Called when the service's circuit closes again. */
  readonly onRecovered: (() => void) | undefined
}

type Settings = Omit<ProtectionOptions, 'clock' | 'steadyClock' | 'onState'>

/** Breakers and concurrency bounds, one for each service however many configs call it. */
export interface Protections {
  /** The protection of `service`, made with these settings where it is the first. */
  share(service: string, client: ServiceClient, settings: Settings): SharedProtection
}

interface Entry {
  readonly protect: Protect
  readonly clients: Set<ServiceClient>
  state: BreakerState
}

/** Makes the protections of one process; the gauge says of each name the worst of the services that have it. */
export function createProtections(options: {
  /** Of dates that services name. */
  readonly clock: Clock
  /** Of everything else: it never jumps. Default `STEADY_CLOCK`. */
  readonly steadyClock?: Clock | undefined
  readonly metrics: Metrics | undefined
}): Protections {
  const { clock, steadyClock = STEADY_CLOCK, metrics } = options
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
      protect: createProtection({ ...settings, clock, steadyClock, onState }),
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
