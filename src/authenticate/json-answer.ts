import { type Claims, Failure, type OutboundResponse } from '../core/index.ts'
import { parseJsonObject } from './strict-json.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The JSON object that a provider answered. Throws `identity_provider_error`: an HTML page is not an outage. */
export function jsonAnswer(response: OutboundResponse): Claims {
  try {
    return parseJsonObject(utf8.decode(response.body))
  } catch {
    // Without a cause: its text may quote the answer.
    throw new Failure('identity_provider_error', { detail: 'the answer is not a JSON object' })
  }
}
