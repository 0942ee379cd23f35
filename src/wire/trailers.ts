import { checkSection, readFields } from './fields.ts'
import { malformed } from './wire-error.ts'

/** Fields that would change the framing after the fact (RFC 9110 §6.5.1). */
const FRAMING = ['content-length', 'transfer-encoding'] as const

/**
 * Validates the trailers of a message, which are then dropped: their consumer would bypass the header policy. Throws
 * `WireError` for invalid lines, and for framing fields. `text` begins with the CRLF of the last chunk, and lacks the
 * final empty line.
 */
export function checkTrailers(text: string): void {
  checkSection(text)
  const fields = readFields(text, 2)
  for (const name of FRAMING) if (fields[name] !== undefined) throw malformed('a trailer that frames the message')
}
