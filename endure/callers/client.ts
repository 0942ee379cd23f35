import { Agent, type Dispatcher, request } from 'undici'
import type { Outcome } from '../oracle/call.ts'

/** Longer than any deadline of the proxy: a longer wait is a lost response. */
const LONGEST_MS = 90_000
const MOST_CHARS = 16 * 1024 * 1024

export interface Sent {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Goes away after so long, as a client does who has had enough of an event stream. */
  readonly leaveAfterMs?: number
}

/** Connections of callers. They are kept for a moment only, since either side may close an idle one. */
export const createAgent = (): Agent =>
  new Agent({ keepAliveTimeout: 1_000, keepAliveMaxTimeout: 1_000, connections: 512, allowH2: false })

/** Sends a request and reads all that comes back; never throws. */
export async function send(agent: Dispatcher, sent: Sent): Promise<Outcome> {
  const { url, method, headers, body, leaveAfterMs } = sent
  const leaving = new AbortController()
  const timer = leaveAfterMs === undefined ? undefined : setTimeout(() => leaving.abort(), leaveAfterMs)
  let [status, text] = [0, '']
  let answered: Outcome['headers'] = {}
  let cut: string | undefined
  try {
    const response = await request(url, {
      dispatcher: agent,
      method,
      headers,
      headersTimeout: LONGEST_MS,
      bodyTimeout: LONGEST_MS,
      signal: leaving.signal,
      ...(body === undefined ? {} : { body }),
    })
    status = response.statusCode
    answered = response.headers
    const decoder = new TextDecoder()
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      text += decoder.decode(chunk, { stream: true })
      if (text.length > MOST_CHARS) throw new Error('too long')
    }
  } catch (error) {
    if (!leaving.signal.aborted)
      cut = `${(error as NodeJS.ErrnoException).code ?? ''} ${(error as Error).message}`.trim()
  } finally {
    clearTimeout(timer)
  }
  return { endedAt: performance.now(), status, headers: answered, text, cut }
}
