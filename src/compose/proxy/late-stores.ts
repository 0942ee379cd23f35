import type { Stores, StoresRuntime } from '../../storage/index.ts'
import { type LateRooms, loaded } from './late-rooms.ts'

/** The stores of a process, made when the first configuration needs one. */
export interface LateStores extends Stores {
  /** To be called before anything is opened for a configuration, with what was loaded for it. */
  use(rooms: LateRooms): void
}

/** Stores with this runtime; `given` instead of them where there are some. */
export function lateStores(runtime: StoresRuntime, given: Stores | undefined): LateStores {
  let stores = given
  return {
    use({ storage }) {
      stores ??= storage?.createStores(runtime)
    },
    open: (...args) => loaded(stores).open(...args),
    refusals: (...args) => loaded(stores).refusals(...args),
    states: () => stores?.states() ?? [],
    close: async () => stores?.close(),
  }
}
