import { createSseEndpoint } from '../../bridge/index.ts'
import type { EndpointCredentials, McpEndpoint } from '../../core/index.ts'
import { loginCredentials, type LoginCredentialsOptions } from '../../login/index.ts'
import { createMcpEndpoint, createMemoryEndpoint } from '../../net/index.ts'
import type { OpenLog } from '../../report/index.ts'
import type { ResolvedRoute } from '../../resources/index.ts'
import { egressFrom } from '../egress.ts'
import type { Io } from '../io.ts'
import { type InlineProxyOptions, runInlineProxy } from '../proxy/index.ts'
import { noCredentials, tokenInFile } from '../token-file.ts'

/** 64 MiB are what a message may be; what encodes them takes some more. */
export const MAX_MESSAGE_BYTES = 128 * 1024 * 1024

/** Where messages go: to an endpoint as it is, or through the pipeline of the proxy. */
export type StdioWay =
  | {
      readonly kind: 'url'
      readonly url: URL
      readonly caFile: string | undefined
      readonly tokenFile: string | undefined
      /** Makes a login in the browser, where one is wanted; its `outbound` is closed with the way. */
      readonly login: (() => LoginCredentialsOptions) | undefined
    }
  | {
      readonly kind: 'route'
      readonly tokenFile: string | undefined
      readonly sources: Omit<InlineProxyOptions, 'env' | 'log'>
    }

/** An open way. */
export interface OpenedWay {
  readonly endpoint: McpEndpoint
  readonly credentials: EndpointCredentials
  /** What the server is called in messages. */
  readonly server: string
}

/** Opens what messages need to get there. Throws `ConfigError` and `UsageError`. */
export async function openWay(
  way: StdioWay,
  env: Io['env'],
  log: OpenLog,
  stack: AsyncDisposableStack,
): Promise<OpenedWay> {
  const given = way.tokenFile === undefined ? undefined : tokenInFile(way.tokenFile)
  if (way.kind === 'url') {
    const { url, caFile, login } = way
    const http = createMcpEndpoint({ url, caCertPath: caFile, egressProxy: egressFrom(env) })
    const endpoint = stack.adopt(createSseEndpoint(http, url, MAX_MESSAGE_BYTES), (one) => one.close())
    const credentials = login === undefined ? (given ?? noCredentials()) : personal(login(), stack)
    // Without the query: it may hold what is nobody's business.
    return { endpoint, credentials, server: `at ${url.origin}${url.pathname}` }
  }
  const proxy = stack.adopt(await runInlineProxy({ ...way.sources, env, log }), (one) => one.close())
  const endpoint = stack.adopt(
    createMemoryEndpoint(
      () => proxy.connect(),
      () => proxy.path(),
    ),
    (one) => one.close(),
  )
  const { name, target } = proxy.route
  return {
    endpoint,
    credentials: given ?? noCredentials(whyNoToken(proxy.route)),
    server: `of the route ${name} (${target.origin}${target.path})`,
  }
}

/** What to do where a route of this process wants a token; undefined: what is said of any server. */
function whyNoToken({ name, authServer, resourceUrl }: ResolvedRoute): string | undefined {
  if (authServer === undefined) return undefined
  const url = resourceUrl ?? 'https://…'
  return `Callers of the route ${name} log in at its authorization server, which answers browsers only where extauth proxy serves it: run that, and here extauth stdio --url ${url} --login (or extauth login --url ${url} before).`
}

/** The token of whoever sits in front of the browser. */
function personal(options: LoginCredentialsOptions, stack: AsyncDisposableStack): EndpointCredentials {
  stack.adopt(options.outbound, (one) => one.close())
  const ends = new AbortController()
  stack.defer(() => ends.abort())
  return loginCredentials({ ...options, signal: ends.signal })
}
