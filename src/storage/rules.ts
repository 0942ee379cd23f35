const MAX_VALUE_BYTES = 1024 * 1024
const MAX_TTL_MS = 400 * 86_400_000
const NAME = /^[!-~]{1,512}$/

/** Throws `RangeError` for what the port does not take: the same for every maker, so that none is more lenient than the other. */
export const check = {
  name(name: string): void {
    if (!NAME.test(name))
      throw new RangeError('a name in the store is 1 to 512 printable ASCII characters without spaces')
  },
  value(value: Buffer): void {
    if (value.length > MAX_VALUE_BYTES) throw new RangeError(`a stored value has at most ${MAX_VALUE_BYTES} bytes`)
  },
  ttl(ttlMs: number): void {
    if (!Number.isSafeInteger(ttlMs) || ttlMs < 1 || ttlMs > MAX_TTL_MS) {
      throw new RangeError('a time to live is a whole number of milliseconds, 1 to 400 days')
    }
  },
}
