import type { Inbound } from '../core/index.ts'
import { holdsOne, type ParsedHeaders } from '../http/index.ts'

/**
 * Forwards an interim response (RFC 9110 §15.2): 102, and 103 with links without `secrets`. The proxy sends 100 itself
 * and drops others.
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
    // An invalid hint is dropped.
  }
}
