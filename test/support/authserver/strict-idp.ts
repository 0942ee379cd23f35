import { exportJWK, generateKeyPair } from 'jose'
import { Provider, type ClientMetadata } from 'oidc-provider'
import { createOutbound } from '../../../src/net/index.ts'
import type { Sockets } from '../sockets.ts'
import { TLS } from '../tls.ts'

export interface StrictIdp {
  readonly issuer: string
  /** Logs in and consents as the user in the browser. Returns the callback URL. */
  approve(url: string, subject: string): Promise<URL>
  /** Claims of a user beside the usual ones. */
  readonly users: Map<string, Readonly<Record<string, unknown>>>
  /** Ends everything that a user was given. */
  revoke(subject: string): Promise<void>
}

const keys = Promise.all(
  ['RS256', 'ES256', 'EdDSA'].map(async (alg) => {
    const { privateKey } = await generateKeyPair(alg, { extractable: true })
    return Object.assign(await exportJWK(privateKey), { alg, use: 'sig', kid: alg })
  }),
)

/** An independent OpenID provider on TLS with the strictest settings; its CA is in test/fixtures/tls. */
export async function startStrictIdp(
  sockets: Sockets,
  clients: readonly ClientMetadata[],
  ttl: { readonly accessSeconds?: number } = {},
): Promise<StrictIdp> {
  const serving: { handle?: ReturnType<Provider['callback']> } = {}
  const issuer = await sockets.https(TLS.server, (request, response) => void serving.handle?.(request, response))
  const users = new Map<string, Readonly<Record<string, unknown>>>()
  const grants = new Map<string, string[]>()
  const { accessSeconds = 600 } = ttl
  const provider = new Provider(issuer, {
    clients: [...clients],
    jwks: { keys: await keys },
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email', 'email_verified'] },
    // As the specification has it: what scopes ask for is at user info.
    conformIdTokenClaims: true,
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        name: id[0]?.toUpperCase() + id.slice(1),
        groups: ['dev'],
        email: `${id}@example.com`,
        email_verified: true,
        ...users.get(id),
      }),
    }),
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA'] },
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'none'],
    cookies: { keys: ['x'.repeat(32)] },
    features: { devInteractions: { enabled: false } },
    ttl: {
      AccessToken: accessSeconds,
      IdToken: accessSeconds,
      RefreshToken: 3600,
      AuthorizationCode: 60,
      Grant: 3600,
      Session: 3600,
      Interaction: 60,
    },
  })

  serving.handle = provider.callback()

  const visitor = () => {
    const outbound = sockets.closing(createOutbound({ name: 'browser', clock: Date, caCert: () => TLS.ca }))
    const jar = new Map<string, string>()
    return async (at: string): Promise<URL> => {
      const cookie = [...jar].map((pair) => pair.join('=')).join('; ')
      const { status, headers } = await outbound.request({ method: 'GET', url: at, headers: { cookie } })
      for (const [, name = '', value = ''] of (headers['set-cookie'] ?? '').matchAll(/(?:^|, )([^=;, ]+)=([^;]*)/g))
        if (!/^(path|expires|samesite)$/i.test(name)) jar.set(name, value)
      if (status !== 302 && status !== 303) throw new Error(`the identity provider answered ${status}`)
      return new URL(headers['location'] ?? '', issuer)
    }
  }

  const decide = async (uid: string, subject: string): Promise<string> => {
    const interaction = await provider.Interaction.find(uid)
    if (interaction === undefined) throw new Error('no such interaction')
    const { scope = '', client_id: clientId } = interaction.params as { scope?: string; client_id: string }
    const grant = new provider.Grant({ accountId: subject, clientId })
    grant.addOIDCScope(scope)
    const grantId = await grant.save()
    grants.set(subject, [...(grants.get(subject) ?? []), grantId])
    interaction.result = { login: { accountId: subject }, consent: { grantId } }
    await interaction.persist()
    return interaction.returnTo
  }

  return {
    issuer,
    users,
    async approve(url, subject) {
      const visit = visitor()
      let at = await visit(url)
      while (at.origin === issuer) {
        const uid = /^\/interaction\/([^/]+)$/.exec(at.pathname)?.[1]
        at = await visit(uid === undefined ? at.href : await decide(uid, subject))
      }
      return at
    },
    async revoke(subject) {
      for (const id of grants.get(subject) ?? []) await (await provider.Grant.find(id))?.destroy()
    },
  }
}
