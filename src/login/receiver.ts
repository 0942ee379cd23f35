import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Receives the browser's redirect on loopback (RFC 8252 §7.3). */
export interface Receiver {
  /** The redirect URI. */
  readonly url: string
  /** The callback parameters, once `accepts` returned true. Rejects after the deadline. */
  readonly answer: Promise<URLSearchParams>
  close(): void
}

export interface ReceiverOptions {
  /** Deadline for the user in milliseconds. */
  readonly patienceMs: number
  /** Whether a response belongs to this login; others get an error page, and the receiver keeps waiting. */
  readonly accepts: (answer: URLSearchParams) => boolean
  /** Preferred port; another one if it is taken. */
  readonly port?: number | undefined
  /** Stops waiting. */
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

/** Starts listening. Rejects when it cannot listen on loopback. */
export async function openReceiver(options: ReceiverOptions): Promise<Receiver> {
  const { promise, resolve, reject } = Promise.withResolvers<URLSearchParams>()
  const server = createServer({ maxHeaderSize: 32 * 1024, requestTimeout: 10_000 }, (request, response) => {
    const url = URL.parse(request.url ?? '/', 'http://127.0.0.1')
    const isAnswer = request.method === 'GET' && url?.pathname === CALLBACK_PATH
    const isOurs = isAnswer && options.accepts(url.searchParams)
    response.writeHead(isOurs ? 200 : isAnswer ? 400 : 404, HEADERS)
    response.end(
      isOurs
        ? page('You can close this page and go back to your program.')
        : page('This page does not belong to a current login.'),
    )
    if (isOurs) resolve(url.searchParams)
  })
  const port = await listening(server, options.port ?? 0).catch(() => listening(server, 0))
  const timer = setTimeout(() => reject(new Error('the browser did not return')), options.patienceMs)
  const onAbort = (): void => reject(new Error('the login was canceled'))
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
      // The page is still being sent to the browser.
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
