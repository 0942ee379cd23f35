import { afterEach } from 'vitest'
import type { StoreMaker, StoreWorld } from './suite.ts'

/** Opens worlds and closes them after each test. */
export function useWorlds(maker: StoreMaker): () => Promise<StoreWorld> {
  const opened: StoreWorld[] = []
  afterEach(async () => {
    for (const world of opened.splice(0)) await world.close()
  })
  return async () => {
    const world = await maker.open()
    opened.push(world)
    return world
  }
}

export const bytes = (text: string): Buffer => Buffer.from(text)

/** Calls so many times at once, on both replicas in turn, and waits for all. */
export function atOnce<T>(times: number, call: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: times }, (_, index) => call(index)))
}
