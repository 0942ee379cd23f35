import type { Log } from '../core/index.ts'
import type { KeyStoreOptions } from '../oauth/index.ts'

/**
 * Logs once when an issuer's keys can't be refreshed, while the last ones are used, and once on recovery. `about`
 * identifies the issuer, `signed` the purpose.
 */
export function noteKeys(about: object, signed: string, log: Log): KeyStoreOptions['onFetched'] {
  let isFailing = false
  return (count, failure) => {
    if (failure !== undefined && !isFailing)
      log.warn(
        { ...about, reason: failure.code, detail: failure.detail, keys: count },
        `key refresh failed for ${signed}`,
      )
    else if (failure === undefined && isFailing) log.info({ ...about, keys: count }, `keys refreshed for ${signed}`)
    isFailing = failure !== undefined
  }
}
