import { ID_JAG, jag, jagClaims, OTHER } from './rig.ts'
import { type Kind, rowsOf, type Wrong, wrongOf } from './wrong-assertions.ts'

const AUD = /^aud must be the issuer of this server only$/
const CLIENT = /^client_id is not the client/
const RESOURCE = /^resource is not served here/

const KIND: Kind = { typ: ID_JAG, claims: jagClaims, make: jag, aud: AUD }
const { claims, header } = rowsOf(KIND)

/** Identity assertions that differ from a right one in one thing. */
export const WRONG_ID_JAGS: readonly Wrong[] = [
  header('typ JWT', /^typ is not/, { typ: 'JWT' }),
  header('typ of an access token', /^typ is not/, { typ: 'at+jwt' }),
  header('typ of a logout token', /^typ is not/, { typ: 'logout+jwt' }),
  header('no typ', /^typ is not/, { typ: undefined }),
  header('typ that only begins so', /^typ is not/, { typ: `${ID_JAG}2` }),
  header('typ with another prefix', /^typ is not/, { typ: `text/${ID_JAG}` }),
  header('typ that is a number', /^typ is not a string$/, { typ: 1 }),
  claims('aud the token endpoint', AUD, (rig) => ({ aud: `${rig.issuer}/oauth/token` })),
  claims('client_id another client', CLIENT, () => ({ client_id: OTHER.id })),
  claims('an unknown client_id', CLIENT, () => ({ client_id: 'unknown' })),
  claims('client_id an array', CLIENT, () => ({ client_id: [OTHER.id] })),
  claims('no client_id', CLIENT, () => ({ client_id: undefined })),
  claims('client_id null', CLIENT, () => ({ client_id: null })),
  claims('azp instead of client_id', CLIENT, () => ({ client_id: undefined, azp: 'nightly-report' })),
  claims('an unknown resource', RESOURCE, () => ({ resource: 'https://other.example/mcp' })),
  claims('the resource and one more', RESOURCE, (rig) => ({ resource: [`${rig.url}/mcp`, 'https://other.example'] })),
  claims('an empty array of resources', RESOURCE, () => ({ resource: [] })),
  claims('a resource that is a number', RESOURCE, () => ({ resource: 1 })),
  claims('a resource below ours', RESOURCE, (rig) => ({ resource: `${rig.url}/mcp/x` })),
  claims('an empty resource', RESOURCE, () => ({ resource: '' })),
  claims('no jti', /^jti is not a string/, () => ({ jti: undefined })),
  claims('a scope that is an array', /^scope is not a string$/, () => ({ scope: ['mcp:read'] })),
  ...wrongOf(KIND),
]
