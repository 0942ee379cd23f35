import { load } from './api.js'
import { eventsOf } from './bodies.js'

/** Placeholder for a response that is not recorded. */
export const NOT_KEPT = { isKept: false, isOurs: false, notes: [], said: '' }

const LOOKS = 20
const BETWEEN_MS = 100

/**
 * An answer as the inspector keeps it, its secrets masked: `result` and `notes` like those of a client, `said` for the message
 * of an error, `text` for what can't be read as a message any more, `isOurs` for an answer that the proxy made by itself.
 */
export async function maskedAnswer(requestId) {
  for (let look = 0; look < LOOKS; look++) {
    const request = await load(`/requests/${requestId}`).catch(() => undefined)
    if (request === undefined) return NOT_KEPT
    if (!request.summary.isOpen) return answerIn(request)
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS))
  }
  return NOT_KEPT
}

function answerIn({ summary, answer, responseBody }) {
  const isOurs = summary.reason !== '' && answer.fromBackend === undefined
  const text = responseBody?.text ?? ''
  if (text === '') return { ...NOT_KEPT, isOurs }
  const all = (eventsOf(text)?.map(({ data }) => data) ?? [text]).map(parsed)
  const last = all.findLast((one) => one !== undefined && one.method === undefined)
  return {
    isKept: true,
    isOurs,
    result: last?.result,
    said: last?.error?.message ?? (last === undefined ? text.slice(0, 300) : ''),
    notes: all.filter((one) => one?.method !== undefined),
    text: last === undefined ? text : '',
  }
}

function parsed(text) {
  try {
    const message = JSON.parse(text)
    return typeof message === 'object' && message !== null ? message : undefined
  } catch {
    return undefined
  }
}
