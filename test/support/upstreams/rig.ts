import { createUpstream, type UpstreamDeps, type UpstreamLeg } from '../../../src/upstreams/index.ts'
import { after, monotonicNow, Secret } from '../../../src/core/index.ts'
import { once } from '../../../src/fields/index.ts'
import { createOutbound, type OutboundOptions } from '../../../src/net/index.ts'
import { upstreamProvider } from '../../../src/resources/upstream/upstream-provider.ts'
import { createManualClock, createRecordingLog, createTestSecrets } from '../ports.ts'
import type { Sockets } from '../sockets.ts'
import { TLS } from '../tls.ts'
import type { Idp } from './idp.ts'

export const SECRET = 'client secret: of/us'

/** Later than any test ends. */
export const IN_TIME = after(monotonicNow(), 600_000)

/** There is no file with a token. */
export const NO_FILES = { tokenFile: () => createTestSecrets({}).get('no/file') }

export const LEG: UpstreamLeg = {
  state: 'state-of-the-leg',
  nonce: 'nonce-of-the-leg',
  codeVerifier: new Secret('verifier-of-the-leg-verifier-of-the-leg-1234'),
  redirectUri: 'https://mcp.example.com/oauth/callback',
}

/** A successful callback. */
export const callback = (idp: Pick<Idp, 'url'>, parameters: Readonly<Record<string, string>> = {}): URLSearchParams =>
  new URLSearchParams({ code: 'code-1', state: LEG.state, iss: idp.url, ...parameters })

// Making a schema takes longer than using it.
const schema = once(upstreamProvider)

/** Everything around an upstream: real connections, ports that record. */
export function createRig(
  sockets: Sockets,
  outbound: Partial<OutboundOptions> = {},
  more: Partial<Pick<UpstreamDeps, 'tokenFile'>> & { readonly secrets?: Readonly<Record<string, string>> } = {},
) {
  const { tokenFile } = { ...NO_FILES, ...more }
  const clock = createManualClock()
  const log = createRecordingLog()
  const secrets = createTestSecrets({ 'idp/secret': SECRET, 'idp/ca': TLS.ca.toString(), ...more.secrets })
  const open = (provider: Readonly<Record<string, unknown>>) =>
    sockets.closing(
      createUpstream(schema().parse({ name: 'corp', caBundleRef: { name: 'idp', key: 'ca' }, ...provider }), {
        clock,
        log,
        secrets,
        tokenFile,
        outbound: (options) => createOutbound({ ...options, clock, breaker: false, retry: false, ...outbound }),
      }),
    )
  return {
    clock,
    log,
    secrets,
    oidc: (
      idp: Idp,
      config: Readonly<Record<string, unknown>> = {},
      provider: Readonly<Record<string, unknown>> = {},
    ) =>
      open({
        type: 'oidc',
        oidcConfig: { issuerUrl: idp.url, clientId: 'us', clientSecretRef: { name: 'idp', key: 'secret' }, ...config },
        ...provider,
      }),
    oauth2: (
      idp: Idp,
      config: Readonly<Record<string, unknown>> = {},
      provider: Readonly<Record<string, unknown>> = {},
    ) =>
      open({
        type: 'oauth2',
        oauth2Config: {
          authorizationEndpoint: `${idp.url}/authorize`,
          tokenEndpoint: `${idp.url}/token`,
          clientId: 'us',
          clientSecretRef: { name: 'idp', key: 'secret' },
          userInfo: { endpointUrl: `${idp.url}/userinfo` },
          ...config,
        },
        ...provider,
      }),
  }
}
