import { Secret } from '../core/index.ts'
import { type Io, UsageError } from '../compose/index.ts'
import { readInput } from '../examine/explain/index.ts'

export const MAX_TOKEN_BYTES = 64 * 1024

/** The bearer token in a file, or in standard input for `-`. Throws `UsageError` for another content. */
export async function tokenIn(file: string | undefined, io: Io): Promise<Secret | undefined> {
  if (file === undefined) return undefined
  const text = (await readInput(file, io, MAX_TOKEN_BYTES)).trim().replace(/^bearer +/i, '')
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(text))
    throw new UsageError(`${file} contains no access token; expected one bearer token`)
  return new Secret(text)
}
