import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Waits on loopback for the browser to come back (RFC 8252 §7.3). */
export interface Receiver {
  /** The redirect URI. */
  readonly url: string
  /** What the browser brought, once `accepts` took it. Rejects after the deadline. */
  readonly answer: Promise<URLSearchParams>
  close(): void
}

export interface ReceiverOptions {
  /** Milliseconds that a person may take. */
  readonly patienceMs: number
  /** Says whether an answer belongs to this login; others are told so, and waiting goes on. */
  readonly accepts: (answer: URLSearchParams) => boolean
  /** Port to listen on if it is free; else another. */
  readonly port?: number | undefined
  /** Ends the waiting. */
  readonly signal?: AbortSignal | undefined
}

export const CALLBACK_PATH = '/callback'
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'referrer-policy': 'no-referrer',
  connection: 'close',
}

/** Opens it. Rejects when loopback can't be listened on. */
export async function openReceiver(options: ReceiverOptions): Promise<Receiver> {
  const { promise, resolve, reject } = Promise.withResolvers<URLSearchParams>()
  const server = createServer({ maxHeaderSize: 32 * 1024, requestTimeout: 10_000 }, (request, response) => {
    const url = URL.parse(request.url ?? '/', 'http://127.0.0.1')
    const isAnswer = request.method === 'GET' && url?.pathname === CALLBACK_PATH
    const isOurs = isAnswer && options.accepts(url.searchParams)
    response.writeHead(isOurs ? 200 : isAnswer ? 400 : 404, HEADERS)
    response.end(
      isOurs ? page('You can close this page and go back to your program.') : page('This page belongs to no login.'),
    )
    if (isOurs) resolve(url.searchParams)
  })
  const port = await listening(server, options.port ?? 0).catch(() => listening(server, 0))
  const timer = setTimeout(() => reject(new Error('nobody came back from the browser')), options.patienceMs)
  const onAbort = (): void => reject(new Error('the login was stopped'))
  options.signal?.addEventListener('abort', onAbort, { once: true })
  if (options.signal?.aborted === true) onAbort()
  promise.catch(() => undefined)
  return {
    url: `http://127.0.0.1:${port}${CALLBACK_PATH}`,
    answer: promise,
    close() {
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', onAbort)
      server.close()
      // The page is still on its way to the browser.
      setTimeout(() => server.closeAllConnections(), 1000).unref()
    },
  }
}

function listening(server: ReturnType<typeof createServer>, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

const page = (text: string): string =>
  `<!doctype html><html lang="en"><meta name="color-scheme" content="light dark"><title>extauth</title><body style="font: 1.1rem system-ui; margin: 3rem"><p>${text}</p></body></html>\n`
