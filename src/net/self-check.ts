import type { Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { Failure } from '../core/index.ts'
import { correctConnection } from './undici-gaps.ts'
import { isUndiciLoaded, undici } from './undici.ts'

const CHECK_MS = 5_000
/** An unsolicited interim response, which undici rejects by default, and the response. */
const ANSWER = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

let checked: Promise<void> | undefined

/** Checks the HTTP client once per process, if it is loaded. Throws `config_error`. */
export async function checkHttpClientInUse(): Promise<void> {
  if (isUndiciLoaded()) await (checked ??= checkHttpClient())
}

/**
 * Checks over an in-process connection that the patched internals of the HTTP client exist (`undici-gaps.ts`). A
 * different version would misread responses silently. Throws `config_error`.
 */
export async function checkHttpClient(make: typeof correctConnection = correctConnection): Promise<void> {
  const [client, server] = duplexPair()
  server.once('data', () => server.write(ANSWER))
  const { Pool } = undici()
  const pool = new Pool('http://localhost', {
    connect: (_target, callback) => {
      make(client as Socket)
      process.nextTick(() => callback(null, client as Socket))
    },
  })
  try {
    const answer = await pool.request({ method: 'GET', path: '/', signal: AbortSignal.timeout(CHECK_MS) })
    if (answer.statusCode === 200 && (await answer.body.text()) === 'ok') return
    throw new Error('misread')
  } catch (cause) {
    throw new Failure('config_error', {
      detail:
        'unsupported version of the HTTP client (undici): its patched internals have changed. Install the versions in package-lock.json (npm ci)',
      cause,
    })
  } finally {
    await pool.destroy()
    server.destroy()
  }
}
