import type { AuthenticatedCaller } from '../core/index.ts'

/** The ordinary way to write it; whoever writes it otherwise is looked up by the digest. */
const SCHEME = 'Bearer '
/** Characters at the end of a token that tell tokens apart: of a signature, or of a random text. */
const LOOKED_AT = 24
const MAX_NOTES = 50_000

/** Finds the caller of a token again without hashing all of the token. */
export interface Remembered {
  /** The caller whose very token this `Authorization` value shows, while `accepted` knows him. */
  find(authorization: readonly string[]): AuthenticatedCaller | undefined
  /** Notes where the verdict on the token of an `Authorization` value is. */
  note(authorization: readonly string[], key: string): void
  clear(): void
}

/**
 * Leads from a token to the place of its verdict. The way there is a number, worked out with a `seed` that nobody knows
 * from the last characters of the token; whether it is the token is then a comparison of all of it, in constant time, with
 * the one that the remembered caller holds. So nothing of a token is kept here, and what is found is what its digest would
 * have found, in a third of the time.
 */
export function createRemembered(accepted: (key: string) => AuthenticatedCaller | undefined, seed: number): Remembered {
  const keys = new Map<number, string>()

  const placeOf = (value: string): number => {
    let place = seed
    for (let at = Math.max(SCHEME.length, value.length - LOOKED_AT); at < value.length; at++)
      place = Math.imul(place ^ value.charCodeAt(at), 0x01000193)
    return place
  }

  return {
    find(authorization) {
      const [value] = authorization
      if (value === undefined || authorization.length > 1 || !value.startsWith(SCHEME)) return undefined
      const key = keys.get(placeOf(value))
      if (key === undefined) return undefined
      const caller = accepted(key)
      return caller?.token.isText(value.slice(SCHEME.length)) === true ? caller : undefined
    },
    note([value = ''], key) {
      // The oldest go with the rest: a place that is missing costs one digest, once.
      if (keys.size >= MAX_NOTES) keys.clear()
      keys.set(placeOf(value), key)
    },
    clear: () => keys.clear(),
  }
}
