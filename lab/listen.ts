import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { causeOf, type Log } from '../src/core/index.ts'
import { openListener, type TlsMaterial } from '../src/listen/index.ts'

/** The port that a stand-in should listen on is taken. */
export class PortInUse extends Error {
  readonly port: number

  constructor(port: number, options?: ErrorOptions) {
    super(`port ${port} is in use`, options)
    this.name = 'PortInUse'
    this.port = port
  }
}

export interface Listening {
  /** `http://127.0.0.1:PORT` (`https` with TLS), without a trailing slash. */
  readonly url: string
  close(): Promise<void>
}

const nothing = (): void => {}
const SILENT: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/**
 * Serves `listener` on loopback and nowhere else; port 0 takes a free one. Throws `PortInUse`. `close` ends open
 * connections too, so that idle streams do not keep the process.
 */
export async function listenOnLoopback(
  port: number,
  listener: RequestListener,
  tls?: { readonly cert: Buffer; readonly key: Buffer },
): Promise<Listening> {
  const material: TlsMaterial | undefined = tls && { current: () => tls, onChange: () => nothing }
  const opened = await openListener({
    address: { kind: 'tcp', host: '127.0.0.1', port, isLoopback: true },
    tls: material,
    headerLimitBytes: 64 * 1024,
    deadlines: { keepAliveMs: 4000 },
    serve(request: IncomingMessage, response: ServerResponse, _connection, { expectsContinue }) {
      if (expectsContinue) response.writeContinue()
      listener(request, response)
    },
    refusal: () => ({ headers: {}, body: '' }),
    log: SILENT,
  }).catch((error: unknown) => {
    const { cause } = error as Error
    throw causeOf(cause).code === 'EADDRINUSE' ? new PortInUse(port, { cause }) : error
  })
  return { url: opened.url, close: () => opened.close() }
}
