import { Failure } from '../core/index.ts'
import { StoreError } from '../storage/index.ts'

/** Retry-After in seconds while the store is down. */
const RETRY_AFTER_SECONDS = 2

/** Converts a `StoreError` to `store_unavailable`; returns other errors as they are. */
export function storeFailure(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error
  return new Failure('store_unavailable', { detail: error.kind, cause: error, retryAfterSeconds: RETRY_AFTER_SECONDS })
}
