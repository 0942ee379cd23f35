import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import path from 'node:path'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { parseAllDocuments } from 'yaml'
import { freePort } from '../../lab/free-port.ts'
import { extauth } from '../../test/support/e2e/process.ts'
import { thumbprint } from './certificates.ts'
import { section } from './page.ts'
import { ALICE_THERE, SECRET } from './realm.ts'
import { type Row, rowsFor } from './rows.ts'
import type { Keycloak } from './server.ts'
import { tokenByPassword, visit } from './visit.ts'
import type { World } from './world.ts'

const ANSWER_MS = 30_000

type Members = Record<string, unknown>

/** The outcome as text. */
export interface Verdict {
  readonly wrong: readonly string[]
  readonly rows: number
  /** The response to a request for an identity assertion. */
  readonly noAssertion: string
}

/**
 * The configuration of docs/keycloak.md and variants of it in one started proxy, each with one request; gives what did not
 * become of it what the row says.
 */
export async function askProxy(keycloak: Keycloak, world: World): Promise<Verdict> {
  const realm = keycloak.realms.company
  world.standIn.serves(realm)
  const rows = await rowsFor(world, realm)
  const backend = await startBackend()
  const port = await freePort()
  const file = path.join(world.directory, 'proxy.yaml')
  writeFileSync(file, configFor(rows, { keycloak, world, port, backend: backend.url }))
  const proxy = extauth(['proxy', '--config', file], {
    cwd: world.directory,
    env: { NODE_EXTRA_CA_CERTS: world.authority.certificate },
  })
  try {
    await proxy.line('listening')
    const people = await tokenByPassword(realm, world.authority.pem, 'people', 'openid')
    const claims = { sub: ALICE_THERE, scp: 'access', aud: [realm, 'mcp-extauth-there'] }
    const tokens = {
      people,
      elsewhere: await world.standIn.mint({ ...claims, aud: realm }),
      stranger: await world.standIn.mint({ ...claims, aud: realm, sub: 'bob-there' }),
    }
    const idToken = await world.standIn.mint({ sub: claims.sub, aud: claims.aud })
    const wrong: string[] = []
    for (const [index, row] of rows.entries()) {
      const token = row.spec['type'] === 'xaa' ? idToken : tokens[row.caller]
      const url = `http://127.0.0.1:${port}/${index === 0 ? 'crm' : `row-${index}`}`
      const { status, text } = await call(url, token)
      const [, id = ''] = /"requestId":"([^"]+)"/.exec(text) ?? []
      const line = id === '' ? '' : await lineOf(id, proxy.stderr)
      const problem = problemOf(row, status, text, line)
      if (problem !== undefined) wrong.push(`${row.what}: ${problem}`)
    }
    const { given, answer } = await askForAssertion(keycloak, world, people)
    // The statement here and in docs/keycloak.md is outdated.
    if (given) wrong.push('Keycloak gives identity assertions: the first leg of xaa is to be held against it')
    return { wrong: [...wrong, ...thumbprints(world)], rows: rows.length, noAssertion: answer }
  } finally {
    proxy.process.kill('SIGKILL')
    await backend.close()
  }
}

/** The line of a request in the log, which comes a moment after its answer. */
async function lineOf(id: string, log: () => string): Promise<string> {
  for (const endsAtMs = Date.now() + ANSWER_MS; Date.now() < endsAtMs;) {
    const line = log()
      .split('\n')
      .find((each) => each.includes(`"requestId":"${id}"`) && each.endsWith('}'))
    if (line !== undefined) return line
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`the log has no line of request ${id}`)
}

function problemOf(row: Row, status: number, text: string, line: string): string | undefined {
  const response = `${status} ${text.slice(0, 300)} ${line}`
  if (row.refused !== undefined) {
    const [reason, detail] = row.refused
    return status >= 400 && text.includes(`"${reason}"`) && detail.test(line) ? undefined : response
  }
  if (status !== 200) return response
  const { azp, aud, preferred_username: name } = decodeJwt(text)
  const isFor = row.audience === undefined || [aud].flat().includes(row.audience)
  const isOf = row.spec['type'] === 'clientCredentials' || name === 'alice'
  return azp === row.client && isFor && isOf ? undefined : JSON.stringify(decodeJwt(text))
}

/** Whether this Keycloak could be the identity provider of `xaa`. */
async function askForAssertion({ realms }: Keycloak, { authority }: World, token: string) {
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token: token,
    audience: 'crm',
    client_id: 'mcp-extauth',
    client_secret: SECRET,
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const url = `${realms.company}/protocol/openid-connect/token`
  const { status, body } = await visit(url, { ca: authority.pem, headers }, form.toString())
  const { issued_token_type: issued, error, error_description: description } = JSON.parse(body) as Members
  return {
    given: issued === form.get('requested_token_type'),
    answer: `${status} ${String(error)}: ${String(description)}`,
  }
}

/** The header of the assertion that went by against what openssl says of the certificate. */
function thumbprints({ standIn, pairs }: World): readonly string[] {
  const form = standIn.forms.find((each) => each.has('client_assertion'))
  const header = decodeProtectedHeader(form?.get('client_assertion') ?? '')
  const expected = {
    'x5t#S256': thumbprint(pairs.key.certificate, 'sha256'),
    x5t: thumbprint(pairs.key.certificate, 'sha1'),
  }
  return Object.entries(expected)
    .filter(([name, value]) => (header as Members)[name] !== value)
    .map(([name]) => `${name} is not what openssl says`)
}

interface Places {
  readonly keycloak: Keycloak
  readonly world: World
  readonly port: number
  readonly backend: string
}

/** The page's configuration at these places, and beside its route one per row. */
function configFor(rows: readonly Row[], { keycloak, world, port, backend }: Places): string {
  const [page = ''] = section('A token for the backend, exchanged').yaml
  const here = page
    .replaceAll('https://keycloak.example.com', keycloak.url)
    .replaceAll('127.0.0.1:8088', `127.0.0.1:${port}`)
    .replaceAll('https://crm.example.net/mcp', backend)
  const [proxy, ...configs] = parseAllDocuments(here).map((document) => document.toJS() as Members)
  const spec = proxy?.['spec'] as { auth: { oauth: { providers: unknown[] } }; routes: unknown[] }
  const audience = keycloak.realms.company
  spec.auth.oauth.providers.push({ name: 'elsewhere', issuerUrl: world.standIn.url, audience })
  // None of these keys is Keycloak's, so that it is asked.
  const asking = (clientAuth: object, name: string) => ({
    mode: 'oauth',
    oauth: {
      ...spec.auth.oauth,
      providers: [
        {
          name,
          issuerUrl: audience,
          audience: 'mcp-extauth',
          jwksUrl: `${world.standIn.url}/keys`,
          introspectionUrl: `${audience}/protocol/openid-connect/token/introspect`,
          clientAuth,
        },
      ],
    },
  })
  const configured = rows.slice(1).map((row, index) => ({ row, metadata: { name: `row-${index + 1}` } }))
  const variants = configured.map(({ row, metadata }) => ({
    apiVersion: 'extauth.dev/v1alpha1',
    kind: 'MCPExternalAuthConfig',
    metadata,
    spec: row.spec,
  }))
  for (const { row, metadata } of configured)
    spec.routes.push({
      name: metadata.name,
      path: `/${metadata.name}`,
      target: backend,
      externalAuthConfigRef: metadata,
      ...(row.introspects === undefined ? {} : { auth: asking(row.introspects, metadata.name) }),
    })
  return [proxy, ...configs, ...variants].map((document) => JSON.stringify(document)).join('\n---\n')
}

/** Answers with the token that came. */
async function startBackend() {
  const server = createServer((request, response) => {
    response.end((request.headers.authorization ?? '').replace('Bearer ', ''))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}/mcp`, close: () => new Promise((resolve) => server.close(resolve)) }
}

async function call(url: string, token: string): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  return { status: response.status, text: await response.text() }
}
