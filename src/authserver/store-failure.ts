import { Failure } from '../core/index.ts'
import { StoreError } from '../storage/index.ts'

/** Seconds after which a client may come back to a store that did not answer. */
const RETRY_AFTER_SECONDS = 2

/** A `StoreError` as `store_unavailable`; anything else as it is. */
export function storeFailure(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error
  return new Failure('store_unavailable', { detail: error.kind, cause: error, retryAfterSeconds: RETRY_AFTER_SECONDS })
}
