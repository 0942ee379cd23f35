import { describe } from 'vitest'
import type { Store } from '../../../src/storage/index.ts'
import { collectionTests } from './suite-collections.ts'
import { lockTests } from './suite-locks.ts'
import { singleUseTests } from './suite-single-use.ts'
import { valueTests } from './suite-values.ts'

/** A store implementation under test: two replicas of the product on one state. */
export interface StoreWorld {
  /** The same store twice where there can be only one replica. */
  readonly replicas: readonly [Store, Store]
  /** Lets so much time pass, and a little more where time is real. */
  readonly advance: (ms: number) => Promise<void>
  /** Kills the second replica as `kill -9` would: its locks are not released. Only for stores with processes. */
  readonly kill?: () => void
  readonly close: () => Promise<void>
}

export interface StoreMaker {
  readonly name: string
  /** A world with nothing in it. */
  open(): Promise<StoreWorld>
}

/** The contract of every `Store` implementation, races included. */
export function storeSuite(maker: StoreMaker): void {
  describe(`every store: ${maker.name}`, () => {
    valueTests(maker)
    singleUseTests(maker)
    lockTests(maker)
    collectionTests(maker)
  })
}
