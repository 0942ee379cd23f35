import { type Claims, Failure, type OutboundResponse } from '../core/index.ts'
import { readJsonObject } from '../http/index.ts'

/** The JSON object that a provider answered. Throws `identity_provider_error`: an HTML page is not an outage. */
export function jsonAnswer(response: OutboundResponse): Claims {
  const answer = readJsonObject(response.body)
  if (answer === undefined) throw new Failure('identity_provider_error', { detail: 'the answer is not a JSON object' })
  return answer
}
