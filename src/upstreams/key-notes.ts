import type { Log } from '../core/index.ts'
import type { KeyStoreOptions } from '../oauth/index.ts'

/**
 * One line when the keys of somebody can't be renewed, while the last ones serve, and one when they are again. `about` says whose,
 * `signed` what they are for.
 */
export function noteKeys(about: object, signed: string, log: Log): KeyStoreOptions['onFetched'] {
  let isFailing = false
  return (count, failure) => {
    if (failure !== undefined && !isFailing)
      log.warn({ ...about, reason: failure.code, detail: failure.detail, keys: count }, `no new keys for ${signed}`)
    else if (failure === undefined && isFailing) log.info({ ...about, keys: count }, `there are new keys for ${signed}`)
    isFailing = failure !== undefined
  }
}
