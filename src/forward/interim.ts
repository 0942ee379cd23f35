import type { Inbound } from '../core/index.ts'
import { holdsOne, type ParsedHeaders } from '../http/index.ts'

/**
 * Sends an interim answer on (RFC 9110 §15.2): 102, and 103 with its links, of which none may hold one of `secrets`. 100
 * is ours to say, and the rest would only confuse.
 */
export function sendInterim(
  { response }: Inbound,
  status: number,
  { link }: ParsedHeaders,
  secrets: readonly string[],
): void {
  if (status === 102) response.writeInterim(status, [])
  if (status !== 103 || link === undefined) return
  const links = [link].flat().filter((line) => !holdsOne(line, secrets))
  try {
    if (links.length > 0)
      response.writeInterim(
        status,
        links.flatMap((line) => ['link', line]),
      )
  } catch {
    // A hint that is not well formed is no loss.
  }
}
