import {
  asFailure,
  Failure,
  type Caller,
  type ConnectedAccounts,
  type ConnectionProblem,
  type Credential,
  type HeaderCredential,
  type Secret,
  type UpstreamToken,
} from '../core/index.ts'
import { headerValue } from './header-value.ts'
import type { Source } from './source.ts'

/** The failure of a caller without a usable connection. */
export const notConnected = (provider: string, problem: ConnectionProblem, detail: string): Failure =>
  new Failure('not_connected', { detail, connection: { provider, problem } })

/** The failure that `widen` throws. */
export async function widened(
  connections: ConnectedAccounts,
  caller: Caller,
  provider: string,
  scopes: readonly string[],
): Promise<Failure> {
  try {
    return await connections.widen(caller, provider, scopes)
  } catch (error) {
    return asFailure(error)
  }
}

export interface ConnectedHeader {
  /** Header name, in any case. */
  readonly name: string
  /** Prefix of the value; empty for none. */
  readonly prefix: string
  /** Name in `connections.providers`. */
  readonly provider: string
}

/**
 * The credential of the caller's connected account in one header (types `upstreamInject`, `headerInjection` and
 * `bearerToken` with a connection). Cached by the connections alone, which drop what was disconnected. Throws
 * `type_not_runnable` without connections; `obtain` throws what `ConnectedAccounts` throws.
 */
export function createConnectedSource(
  { name, prefix, provider }: ConnectedHeader,
  connections: ConnectedAccounts | undefined,
): Source {
  if (connections === undefined)
    throw new Failure('type_not_runnable', { detail: 'a connected account requires `connections` in the ProxyConfig' })
  const headerName = name.toLowerCase()
  const credentials = new WeakMap<Secret, HeaderCredential>()
  const tokens = new WeakMap<Credential, UpstreamToken>()

  const credentialOf = (token: UpstreamToken): Credential => {
    const known = credentials.get(token.token)
    if (known !== undefined) return known
    const value = headerValue(prefix, token.token, `of the connection ${provider}`)
    const credential: HeaderCredential = { kind: 'header', name: headerName, value }
    credentials.set(token.token, credential)
    tokens.set(credential, token)
    return credential
  }
  const reject = async (caller: Caller, refused: Credential): Promise<boolean> => {
    const token = tokens.get(refused)
    return token !== undefined && (await connections.reject(caller, provider, token))
  }
  const ended = (): Failure => notConnected(provider, 'ended', 'the backend rejected the credential of the connection')

  return {
    obtain(caller) {
      const token = connections.current(caller, provider, 'access_token')
      return token instanceof Promise ? token.then(credentialOf) : credentialOf(token)
    },
    async reject(caller, refused) {
      if (await reject(caller, refused)) return true
      throw ended()
    },
    rejectedAgain: async (caller, refused) => ((await reject(caller, refused)) ? undefined : ended()),
    widen: (caller, scopes) => widened(connections, caller, provider, scopes),
  }
}
