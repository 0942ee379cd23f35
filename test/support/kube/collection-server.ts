import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { afterEach } from 'vitest'
import { createInformer, createKubeClient, type Informer, type ResourceType } from '../../../src/kube/index.ts'
import { createApiClient } from '../../../src/net/index.ts'
import { silentLog } from './manual-timers.ts'

export const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
}
const closers: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

export const object = (name: string, version: number) => ({
  metadata: { name, namespace: 'n', resourceVersion: String(version) },
})
export const event = (type: string, name: string, version: number): string =>
  `${JSON.stringify({ type, object: object(name, version) })}\n`

/** An API server of one collection whose answers are the test's; `watches` are answered in turn, the last one over and over. */
export async function serve(answers: {
  list?: (request: IncomingMessage, response: ServerResponse, round: number) => void
  watches: ((response: ServerResponse, query: URLSearchParams) => void)[]
  /** Longest silence of a watch. Default 400. */
  silenceMs?: number
  mayBeMissing?: boolean
}) {
  const seen: URLSearchParams[] = []
  let lists = 0
  const server: Server = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams
    seen.push(query)
    if (query.has('watch')) {
      const number = seen.filter((one) => one.has('watch')).length - 1
      answers.watches[Math.min(number, answers.watches.length - 1)]?.(response, query)
      return
    }
    const page = { metadata: { resourceVersion: '10' }, items: [object('a', 5)] }
    if (answers.list === undefined) response.end(JSON.stringify(page))
    else answers.list(request, response, lists++)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no address')
  const api = createApiClient({ origin: `http://127.0.0.1:${address.port}` })
  closers.push(
    () => server.closeAllConnections(),
    () => server.close(),
    () => api.close(),
  )
  const client = createKubeClient({ api, token: () => undefined, fieldManager: 'test', userAgent: 'test' })
  const changes: string[] = []
  const restarts: string[] = []
  const informer: Informer = createInformer({
    client,
    type: CONFIG_MAPS,
    silenceMs: answers.silenceMs ?? 400,
    mayBeMissing: answers.mayBeMissing ?? false,
    onChange: (key, _before, after) =>
      changes.push(after === undefined ? `-${key}` : `${key}@${after.metadata.resourceVersion}`),
    onRestart: (reason) => restarts.push(reason),
    log: silentLog,
  })
  closers.push(() => informer.close())
  return { client, informer, changes, restarts, seen, watches: () => seen.filter((query) => query.has('watch')) }
}

export const idle = (response: ServerResponse): void => response.writeHead(200).flushHeaders()
