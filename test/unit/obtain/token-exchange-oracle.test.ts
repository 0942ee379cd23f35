import * as oauth from 'oauth4webapi'
import { afterEach, expect, test } from 'vitest'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, issued, json, startEndpoint, type Received } from '../../support/obtain/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const URN = 'urn:ietf:params:oauth:token-type:access_token'
const SECRET = 'p@ss: wörd/+%'
const SECRETS = { 'idp/secret': SECRET }
const secretRef = { name: 'idp', key: 'secret' }

/** The compared part of a request, without the order of form fields and the client's own headers. */
const essence = ({ method, path, headers, form }: Received) => ({
  method,
  path,
  authorization: decodeURIComponent((headers.authorization ?? '').replace(/^Basic /, '')),
  type: headers['content-type']?.replace(/;.*/, ''),
  accept: headers.accept,
  form: form.map((pair) => pair.join('=')).toSorted(),
})

test.each<[string, Record<string, unknown>, (client: oauth.Client) => oauth.ClientAuth, Record<string, string>]>([
  ['no client authentication', { clientId: 'us' }, () => oauth.None(), {}],
  ['client_secret_basic', { clientId: 'us', clientSecretRef: secretRef }, () => oauth.ClientSecretBasic(SECRET), {}],
  [
    'client_secret_post, scopes and resource',
    {
      clientId: 'us',
      clientSecretRef: secretRef,
      clientAuthMethod: 'client_secret_post',
      scopes: ['a', 'b'],
      resource: 'https://backend.example/mcp',
    },
    () => oauth.ClientSecretPost(SECRET),
    { scope: 'a b', resource: 'https://backend.example/mcp' },
  ],
])('with %s the request is the one that oauth4webapi makes', async (_what, spec, authenticate, extra) => {
  const endpoint = await startEndpoint(sockets, json(issued('issued-token')))
  const { header } = createRig(sockets, { secrets: SECRETS }).exchange({
    tokenUrl: endpoint.url,
    audience: 'https://backend.example',
    ...spec,
  })
  expect(await header(createCaller({ token: 'callers-token' }))).toBe('authorization: Bearer issued-token')

  const server: oauth.AuthorizationServer = { issuer: 'https://id.example', token_endpoint: endpoint.url }
  const client: oauth.Client = { client_id: 'us' }
  const response = await oauth.genericTokenEndpointRequest(
    server,
    client,
    authenticate(client),
    GRANT,
    {
      subject_token: 'callers-token',
      subject_token_type: URN,
      requested_token_type: URN,
      audience: 'https://backend.example',
      ...extra,
    },
    { [oauth.allowInsecureRequests]: true },
  )
  const [ours, theirs] = endpoint.received
  if (ours === undefined || theirs === undefined) throw new Error('two requests were made')
  expect(essence(ours)).toEqual(essence(theirs))

  // And what we take for a good answer is one for them.
  const processed = await oauth.processGenericTokenEndpointResponse(server, client, response)
  expect(processed).toMatchObject({ access_token: 'issued-token', token_type: 'bearer', expires_in: 3600 })
})
