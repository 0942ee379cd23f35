import { request } from 'node:http'
import { addressText, type ListenAddress } from '../listen/index.ts'
import { LISTEN_ADDRESS } from './options/option-values.ts'

const DEADLINE_MS = 2_000
/** One page of a list is much smaller. */
const MAX_BYTES = 8 * 1024 * 1024

export const ADMIN_OPTION = {
  type: 'string',
  is: LISTEN_ADDRESS,
  value: 'ADDR',
  help: 'Admin listener: host:port, :port or unix:/path. Default 127.0.0.1:8081.',
} as const

export const DEFAULT_ADMIN = '127.0.0.1:8081'

export interface AdminRequest {
  /** Default GET. */
  readonly method?: 'GET' | 'DELETE'
  /** With the query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The admin listener did not respond. */
export class NoResponse extends Error {}

/** Sends a request to the admin listener of a running process. Throws `NoResponse` after 2 s, or without a response. */
export async function askAdmin(
  address: ListenAddress,
  { method = 'GET', path, headers }: AdminRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  const target =
    address.kind === 'unix'
      ? { socketPath: address.path }
      : address.kind === 'tcp'
        ? { host: reachable(address.host), port: address.port }
        : {}
  try {
    return await new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(DEADLINE_MS)
      request({ ...target, method, path, signal, headers: { host: 'localhost', ...headers } }, (response) => {
        const chunks: Buffer[] = []
        let bytes = 0
        response
          .on('data', (chunk: Buffer) => {
            bytes += chunk.length
            if (bytes > MAX_BYTES) response.destroy(new Error(`a response of more than ${MAX_BYTES} bytes`))
            else chunks.push(chunk)
          })
          .once('error', reject)
          .once('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
      })
        .once('error', reject)
        .end()
    })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new NoResponse(`no response from ${addressText(address)}${path.replace(/\?.*/, '')}: ${reason}`)
  }
}

/** A listener on all interfaces is reached on loopback. */
const reachable = (host: string): string =>
  ['', '*', '0.0.0.0'].includes(host) ? '127.0.0.1' : host === '::' ? '::1' : host
