import { asFailure, type Log, type SecretHandle } from '../core/index.ts'

/** A value derived from secrets, rebuilt when they change. */
export interface Followed<T> {
  /** The value for what the secrets are now. Throws what `make` threw while there has never been one. */
  current(): T
  /** Looks at the sources of all secrets at once. */
  refresh(): Promise<void>
}

/**
 * Follows secrets: `make` is called again when one of them has changed. When it throws, the previous value
 * stays in use, with one log line (decisions §6).
 */
export function follow<T>(
  handles: readonly SecretHandle[],
  make: () => T,
  what: string,
  log: Log,
  onChanged?: () => void,
): Followed<T> {
  let made: { readonly value: T } | undefined
  let seen: string | undefined

  return {
    current() {
      const versions = handles.map(({ version }) => version).join()
      if (made !== undefined && versions === seen) return made.value
      try {
        made = { value: make() }
        if (seen !== undefined) {
          log.info({ what }, 'secrets changed, the new ones are in use')
          onChanged?.()
        }
        seen = versions
      } catch (error) {
        if (made === undefined) throw error
        if (versions !== seen)
          log.error({ what, problem: asFailure(error).detail }, 'changed secrets cannot be used, the ones before stay')
        seen = versions
      }
      return made.value
    },
    async refresh() {
      await Promise.all(handles.map((handle) => handle.refresh()))
    },
  }
}
