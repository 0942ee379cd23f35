import { UnsecuredJWT } from 'jose'
import { extauth } from '../../test/support/e2e/process.ts'
import { authConfig, configFolder, freePort, proxyConfig } from '../../test/support/e2e/run.ts'
import { createSockets } from '../../test/support/sockets.ts'
import { TLS } from '../../test/support/tls.ts'
import { listenOnLoopback } from '../../lab/listen.ts'
import { startIssuer } from '../callers.ts'
import { measureLoad, type Subject } from '../measure.ts'
import type { Generator } from '../processes.ts'
import { tokensTable } from '../report.ts'

const CALLERS = 100
const SHAPE = { size: 1024, connections: 16 }
const EXCHANGE = 'tokenExchange'
/** An unused endpoint. */
const FIXED = 'bearerToken'
/** Until each caller came once. */
const MOST_ROUNDS = 10
const LIFE_SECONDS = 6 * 3600
const TARGET = 'https://as.example.com'
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'
/** As long for each type, so that what differs is how it is come by. */
const TOKEN = 't'.repeat(600)

/** Response of every endpoint: an identity assertion if requested, otherwise the token. */
function answerTo(form: URLSearchParams): object {
  const type = form.get('requested_token_type') ?? 'urn:ietf:params:oauth:token-type:access_token'
  if (type !== ID_JAG)
    return { access_token: TOKEN, issued_token_type: type, token_type: 'Bearer', expires_in: LIFE_SECONDS }
  const exp = Math.floor(Date.now() / 1000) + LIFE_SECONDS
  const [, payload = ''] = new UnsecuredJWT({ aud: TARGET, client_id: 'us', exp }).encode().split('.')
  const header = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'oauth-id-jag+jwt' })).toString('base64url')
  const assertion = `${header}.${payload}.c2ln`
  return { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: LIFE_SECONDS }
}

/** The configs, by the names of their types. */
const specsOf = (url: string, audience: string): Readonly<Record<string, object>> => {
  const secret = { name: 'bench', key: 'secret' }
  const caCertPath = './secrets/bench/ca'
  const client = { clientId: 'us', clientSecretRef: secret, caCertPath }
  return {
    [EXCHANGE]: { ...client, tokenUrl: `${url}/token`, audience: 'backend' },
    [FIXED]: { tokenSecretRef: secret },
    clientCredentials: { ...client, tokenUrl: `${url}/token` },
    obo: { ...client, authority: url, tenantId: 'contoso.example', audience: 'api://backend' },
    xaa: {
      idpTokenUrl: `${url}/token`,
      idpCaCertPath: caCertPath,
      idpClientId: audience,
      idpClientSecretRef: secret,
      targetTokenUrl: `${url}/token`,
      targetCaCertPath: caCertPath,
      targetClientId: 'us',
      targetClientSecretRef: secret,
      targetAudience: TARGET,
    },
  }
}

/**
 * Cost of requests with cached tokens, by the type that fetched them, and with a fixed one, against those of an exchange.
 * Gives a table. Throws where more or fewer were asked for than there are.
 */
export async function runTokens(
  generator: Generator,
  backend: string,
  options: { readonly rounds: number; readonly roundMs: number },
): Promise<string> {
  const sockets = createSockets()
  const issuer = await startIssuer({ typ: 'JWT', claims: { scp: 'access_as_user' } })
  // Type xaa presents ID tokens, which have no scope.
  const idTokens = await startIssuer({ typ: 'JWT', claims: { scope: undefined } })
  const requests: string[] = []
  const endpoint = await listenOnLoopback(
    0,
    (request, response) => {
      let form = ''
      request.on('data', (chunk: Buffer) => void (form += chunk.toString()))
      request.on('end', () => {
        requests.push(form)
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(answerTo(new URLSearchParams(form))))
      })
    },
    TLS.server,
  )
  sockets.closing(endpoint)
  try {
    const specs = specsOf(endpoint.url, issuer.audience)
    const types = Object.keys(specs)
    const { audience } = issuer
    const providers = [issuer, idTokens].map(({ url: issuerUrl }, index) => ({
      name: `bench-${index}`,
      issuerUrl,
      audience,
      jwksUrl: `${issuerUrl}/jwks`,
      allowPrivateIP: true,
    }))
    const route = (type: string) => ({
      name: type,
      path: `/${type}`,
      target: `${backend}/mcp`,
      externalAuthConfigRef: { name: type.toLowerCase() },
    })
    const configs = types.map((type) => {
      const name = type.toLowerCase()
      return [`${name}.json`, authConfig(name, { type, [type]: specs[type] })] as const
    })
    const folder = await configFolder({
      ...Object.fromEntries(configs),
      'secrets/bench/secret': 'a-secret',
      'secrets/bench/ca': TLS.ca.toString(),
      'proxy.json': proxyConfig({
        secretsDirectory: './secrets',
        auth: { mode: 'oauth', oauth: { resourceUrl: audience, providers } },
        routes: types.map(route),
      }),
    })
    sockets.closing({ close: folder.remove })
    const url = `http://127.0.0.1:${await freePort()}`
    const places = ['--config', folder.directory, '--listen', url.replace('http://', ''), '--admin', '127.0.0.1:0']
    const proxy = extauth(['proxy', ...places])
    sockets.closing({ close: () => (proxy.process.kill('SIGKILL'), proxy.ended) })
    await proxy.line('listening')

    const authorizationsOf = (one: typeof issuer) => one.tokens(CALLERS).map((token) => `Bearer ${token}`)
    const [access, identity] = [authorizationsOf(issuer), authorizationsOf(idTokens)]
    const pid = proxy.process.pid ?? 0
    const subjects: Subject[] = types.map((type) => ({
      name: type,
      url: `${url}/${type}`,
      pid,
      authorizations: type === 'xaa' ? identity : access,
    }))
    // For each caller an exchange, a token on their behalf, an assertion and a token for it; and one of our own.
    const all = 4 * CALLERS + 1
    for (let round = 0; round < MOST_ROUNDS && (round === 0 || requests.length < all); round += 1)
      for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ms: 1500, ...subject })
    const shape = { ...SHAPE, ms: options.roundMs }
    const figures = await measureLoad(generator, subjects, EXCHANGE, shape, options.rounds)
    const asked = requests.length
    if (asked !== all) throw new Error(`${asked} tokens were asked for in place of ${all}`)
    return tokensTable(options.rounds, figures, { callers: CALLERS, asked }, 1.03)
  } finally {
    await sockets.closeAll()
    issuer.close()
    idTokens.close()
  }
}
