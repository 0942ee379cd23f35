import { isObject } from './message.ts'

/** Code of `URLElicitationRequiredError` (MCP 2025-11-25, elicitation). */
export const URL_ELICITATION_REQUIRED = -32_042

/** Marks a `requestState` of the proxy, which reports a connected account to `subscriptions/listen`. */
export const CONNECT_STATE = 'extauth-connect.'

/** Whether these client capabilities include URL elicitation; `elicitation: {}` alone means forms. */
export function opensUrls(capabilities: unknown): boolean {
  const elicitation = isObject(capabilities) ? capabilities['elicitation'] : undefined
  return isObject(elicitation) && isObject(elicitation['url'])
}
