import { checkSection, readFields } from './fields.ts'
import { malformed } from './wire-error.ts'

/** What would say where the message ends, when that has been decided (RFC 9110 §6.5.1). */
const FRAMING = ['content-length', 'transfer-encoding'] as const

/**
 * Reads the trailers of a message, which are then dropped: whoever would read them decided on them without our header policy.
 * Throws `WireError` for lines that are none, and for those that frame a message.
 * @param text begins with the CRLF of the last chunk, and lacks the empty line at its end
 */
export function checkTrailers(text: string): void {
  checkSection(text)
  const fields = readFields(text, 2)
  for (const name of FRAMING) if (fields[name] !== undefined) throw malformed('a trailer that frames the message')
}
