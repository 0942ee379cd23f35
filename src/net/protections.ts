import type { Clock, Metrics } from '../core/index.ts'
import { type BreakerState, CLOSED } from './circuit.ts'
import { createProtection, type Protect, type ProtectionOptions } from './protection.ts'

/** Breaker and concurrency bound of a service, as one of its clients has them. */
export interface SharedProtection {
  readonly protect: Protect
  /** To be called once, when the client closes; with the last one the breaker's memory goes. */
  readonly release: () => void
}

/** Breakers and concurrency bounds, one for each service however many configs call it. */
export interface Protections {
  /** The protection of `service`, made with these settings where it is the first; its state shows under `name`. */
  share(service: string, name: string, settings: Omit<ProtectionOptions, 'clock' | 'onState'>): SharedProtection
}

interface Entry {
  readonly protect: Protect
  readonly names: string[]
  state: BreakerState
}

/** Makes the protections of one process; the gauge says of each name the worst of the services that have it. */
export function createProtections(options: {
  readonly clock: Clock
  readonly metrics: Metrics | undefined
}): Protections {
  const { clock, metrics } = options
  const gauge = metrics?.gauge('extauth_breaker_state', 'Circuit breaker per service: 0 closed, 1 open, 2 probing.', [
    'name',
  ])
  const entries = new Map<string, Entry>()

  const publish = (names: Iterable<string>): void => {
    for (const name of new Set(names)) {
      const states = [...entries.values()].filter((entry) => entry.names.includes(name)).map(({ state }) => state)
      gauge?.with(name).set(Math.max(CLOSED, ...states))
    }
  }

  const open = (settings: Omit<ProtectionOptions, 'clock' | 'onState'>): Entry => {
    const entry: Entry = {
      protect: createProtection({
        ...settings,
        clock,
        onState: (state) => {
          entry.state = state
          publish(entry.names)
        },
      }),
      names: [],
      state: CLOSED,
    }
    return entry
  }

  return {
    share(service, name, settings) {
      const entry = entries.get(service) ?? open(settings)
      entries.set(service, entry)
      entry.names.push(name)
      publish([name])
      return {
        protect: entry.protect,
        release() {
          entry.names.splice(entry.names.indexOf(name), 1)
          if (entry.names.length === 0) entries.delete(service)
          publish([name])
        },
      }
    },
  }
}
