import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { expect } from 'vitest'

const REDIRECT = 'http://localhost:33333/callback'

/** An application of the official client 2.x: keeps what the client gives it, and has a browser. */
export class Application implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT
  readonly clientMetadata: OAuthClientMetadata
  clientMetadataUrl?: string
  /** Authorization requests for which the client sent its user away. */
  readonly sent: URL[] = []
  registrations = 0
  client: StoredOAuthClientInformation | undefined
  kept: StoredOAuthTokens | undefined
  #verifier = ''
  #discovery: OAuthDiscoveryState | undefined

  constructor(metadata: Partial<OAuthClientMetadata> = {}) {
    this.clientMetadata = { client_name: 'Official client', redirect_uris: [REDIRECT], ...metadata }
  }
  state() {
    return 'state-of-the-application'
  }
  clientInformation() {
    return this.client
  }
  saveClientInformation(client: StoredOAuthClientInformation) {
    this.registrations += 1
    this.client = client
  }
  tokens() {
    return this.kept
  }
  saveTokens(tokens: StoredOAuthTokens) {
    this.kept = tokens
  }
  redirectToAuthorization(url: URL) {
    this.sent.push(url)
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier
  }
  codeVerifier() {
    return this.#verifier
  }
  // With these the client refuses to redeem a code at another server than the one it sent its user to (SEP-2352).
  discoveryState() {
    return this.#discovery
  }
  saveDiscoveryState(state: OAuthDiscoveryState) {
    this.#discovery = state
  }
  invalidateCredentials(scope: string) {
    if (scope === 'discovery' || scope === 'all') this.#discovery = undefined
    if (scope === 'tokens' || scope === 'all') this.kept = undefined
    if (scope === 'client' || scope === 'all') this.client = undefined
  }
}

export const LEGACY = '2025-11-25'

export async function connect(url: string, application: Application, revision: string): Promise<Client> {
  const mode = revision === LEGACY ? ('legacy' as const) : { pin: revision }
  const client = new Client({ name: 'official', version: '2.0.0' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: application }))
  return client
}

/** Where a user is who logs in. */
export interface WithUser {
  readonly userAt: (authorizationUrl: string) => Promise<URL>
}

/** The user's part after the client has sent them away, and the client's with what came back. */
export async function finish({ userAt }: WithUser, url: string, application: Application): Promise<void> {
  const answer = await userAt(application.sent.at(-1)?.href ?? '')
  expect(answer.searchParams.get('state')).toBe('state-of-the-application')
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: application })
  await transport.finishAuth(answer.searchParams)
}

export async function logIn(world: WithUser, url: string, application: Application, revision: string): Promise<Client> {
  await expect(connect(url, application, revision)).rejects.toThrow(UnauthorizedError)
  await finish(world, url, application)
  return connect(url, application, revision)
}

export const call = async (client: Client): Promise<string> => {
  const { tools } = await client.listTools()
  expect(tools.length).toBeGreaterThan(0)
  return JSON.stringify((await client.callTool({ name: 'show_request', arguments: {} })).content)
}
