import type { Metrics } from '../../core/index.ts'
import { OAuthError } from '../oauth-error.ts'

/** Wraps a token request handler to count outcomes by grant. */
export function createTokenCounter(metrics: Metrics) {
  const issued = metrics.counter('extauth_authserver_tokens_total', 'Token requests, by grant and outcome.', [
    'grant',
    'outcome',
  ])
  return <Asked extends readonly unknown[], Answer>(grant: string, work: (...asked: Asked) => Promise<Answer>) =>
    async (...asked: Asked): Promise<Answer> => {
      try {
        const answer = await work(...asked)
        issued.with(grant, 'issued').add()
        return answer
      } catch (error) {
        issued.with(grant, error instanceof OAuthError ? error.error : 'failed').add()
        throw error
      }
    }
}
