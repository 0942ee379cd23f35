import { UnsecuredJWT } from 'jose'
import { START_MS } from '../ports.ts'

export const ID_JAG_TYPE = 'urn:ietf:params:oauth:token-type:id-jag'
export const TARGET = 'https://as.target.example'
export const RESOURCE = 'https://mcp.target.example/mcp'
const SECONDS = START_MS / 1_000

/** A JWT with an unverified signature. */
export const jwt = (claims: object, header: object = {}): string => {
  const [, payload = ''] = new UnsecuredJWT({ ...claims }).encode().split('.')
  return `${Buffer.from(JSON.stringify({ alg: 'ES256', ...header })).toString('base64url')}.${payload}.c2ln`
}

/** The claims of an assertion as it has to be. */
export const JAG = {
  iss: 'https://idp.example',
  sub: 'alice',
  aud: TARGET,
  client_id: 'us-there',
  resource: RESOURCE,
  jti: 'one',
  iat: SECONDS,
  exp: SECONDS + 300,
}
export const jag = (claims: object = {}, header: object = {}): string =>
  jwt({ ...JAG, ...claims }, { typ: 'oauth-id-jag+jwt', ...header })

/** An answer to leg 1 as it has to be. */
export const asserted = (assertion: string, members: object = {}): object => ({
  access_token: assertion,
  issued_token_type: ID_JAG_TYPE,
  token_type: 'N_A',
  expires_in: 300,
  ...members,
})
export const granted = (token: string, members: object = {}): object => ({
  access_token: token,
  token_type: 'Bearer',
  expires_in: 3600,
  ...members,
})
