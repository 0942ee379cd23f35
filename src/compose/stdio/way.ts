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

/** Messages may be 64 MiB; their encoding takes more. */
export const MAX_MESSAGE_BYTES = 128 * 1024 * 1024

/** The target of messages: a URL, or the proxy pipeline in this process. */
export type StdioWay =
  | {
      readonly kind: 'url'
      readonly url: URL
      readonly caFile: string | undefined
      readonly tokenFile: string | undefined
      /** Options of the browser login, if enabled; `outbound` is closed with the connection. */
      readonly login: (() => LoginCredentialsOptions) | undefined
    }
  | {
      readonly kind: 'route'
      readonly tokenFile: string | undefined
      readonly sources: Omit<InlineProxyOptions, 'env' | 'log'>
    }

/** An open connection to the server. */
export interface OpenedWay {
  readonly endpoint: McpEndpoint
  readonly credentials: EndpointCredentials
  /** Description of the server in messages. */
  readonly server: string
  /** Origin of the server's pages; undefined if browsers can't reach them. */
  readonly pages: URL | undefined
}

/** Opens the connection to the server. Throws `ConfigError` and `UsageError`. */
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
    // Without the query: it may contain secrets.
    return { endpoint, credentials, server: `at ${url.origin}${url.pathname}`, pages: url }
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
    // Without a listener, only a proxy that runs elsewhere can serve the pages.
    pages: proxy.pages,
  }
}

/** What to do if a route in this process requires a token; undefined for the generic message. */
function whyNoToken({ name, authServer, resourceUrl }: ResolvedRoute): string | undefined {
  if (authServer === undefined) return undefined
  const url = resourceUrl ?? 'https://…'
  return `Callers of the route ${name} log in at its authorization server, which serves browsers only under extauth proxy. Run extauth proxy, then extauth stdio --url ${url} --login (or first extauth login --url ${url}).`
}

/** Credentials of the interactive user. */
function personal(options: LoginCredentialsOptions, stack: AsyncDisposableStack): EndpointCredentials {
  stack.adopt(options.outbound, (one) => one.close())
  const ends = new AbortController()
  stack.defer(() => ends.abort())
  return loginCredentials({ ...options, signal: ends.signal })
}
