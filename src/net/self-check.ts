import type { Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { Failure } from '../core/index.ts'
import { correctConnection } from './undici-gaps.ts'
import { isUndiciLoaded, undici } from './undici.ts'

const CHECK_MS = 5_000
/** An interim answer that nobody asked for, which undici by itself takes for an error, and the answer. */
const ANSWER = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

let checked: Promise<void> | undefined

/** Checks the HTTP client once in a process, where it is in use; until then there is nothing to check. Throws `config_error`. */
export async function checkHttpClientInUse(): Promise<void> {
  if (isUndiciLoaded()) await (checked ??= checkHttpClient())
}

/**
 * Looks, over a connection inside of the process, whether the HTTP client still has the private parts that are put right
 * from outside (`undici-gaps.ts`): with another version than the one that came along, answers would be misread and nobody told.
 * Throws `config_error`.
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
        'the HTTP client (undici) is not the one that this program was made for: what is put right in it has moved. Install exactly what package-lock.json names (npm ci)',
      cause,
    })
  } finally {
    await pool.destroy()
    server.destroy()
  }
}
