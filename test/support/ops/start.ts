import { request as httpRequest } from 'node:http'
import { startOps, type Ops, type OpsOptions } from '../../../src/ops/index.ts'
import type { Log } from '../../../src/core/index.ts'

export const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export const start = (options: Partial<OpsOptions> = {}): Promise<Ops> =>
  startOps({
    address: '127.0.0.1:0',
    version: '1.2.3',
    readiness: () => ({ ok: true }),
    metrics: () => Promise.resolve('# HELP x y\nx 1\n'),
    log: SILENT,
    ...options,
  })

export interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** A request with exactly these headers: `fetch` would not let a test set `Host`. */
export function send(
  target: string | { socketPath: string },
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Got> {
  const where = typeof target === 'string' ? { host: '127.0.0.1', port: new URL(target).port } : target
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { ...where, path, method: options.method ?? 'GET', headers: options.headers, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        )
      },
    )
    request.on('error', reject)
    request.end(options.body)
  })
}
