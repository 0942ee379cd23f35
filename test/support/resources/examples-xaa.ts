import { CLIENTS, FOR_ISSUER, secret } from './examples-clients.ts'
import type { Example } from './examples-outgoing.ts'

const xaa = (more: object) => ({
  type: 'xaa',
  xaa: {
    idpTokenUrl: 'https://idp.example.com/token',
    idpClientId: 'us',
    targetTokenUrl: 'https://as.example.net/token',
    targetClientId: 'us-there',
    targetAudience: 'https://as.example.net',
    ...more,
  },
})

// prettier-ignore
const WRONG_XAA: readonly (readonly [name: string, value: unknown])[] = [
  ['idpTokenUrl', 'http://idp.example.com/token'], ['idpTokenUrl', 'a/b'], ['idpTokenUrl', 'https://a/b#c'], ['targetTokenUrl', 'ftp://a/b'], ['targetTokenUrl', ''], ['targetTokenUrl', 'https://user:pw@a/b'],
  ['idpClientId', ''], ['idpClientId', 7], ['targetClientId', ''], ['idpClientSecretRef', 'text'], ['targetClientSecretRef', { name: 'a' }], ['targetAudience', ''], ['targetAudience', ['a', 'b']], ['targetResource', 'mcp'], ['targetResource', 'urn:a#b'],
  ['scopes', ['a b']], ['scopes', 'a'], ['accessTokenScopes', ['']], ['insecureTargetTokenUrl', 'yes'], ['subjectTokenType', 'access_token'], ['subjectTokenType', 'refresh_token'], ['subjectTokenType', 'urn:ietf:params:oauth:token-type:refresh_token'], ['subjectTokenType', 'ID_TOKEN'], ['subjectTokenType', 'urn:ietf:params:oauth:token-type:jwt'],
  ['subjectProviderName', 7], ['idpCaCertPath', ''], ['targetCaCertPath', 7], ['idpClientAuth', 'none'], ['targetClientAuth', { method: 'none' }],
]
const XAA_NEEDS = ['idpTokenUrl', 'targetTokenUrl', 'targetAudience'] as const
const XAA_LEGS = ['idp', 'target'] as const

const NAMED_CLIENTS = CLIENTS.filter(([, { clientId }]) => clientId !== undefined)

// prettier-ignore
export const XAA_EXAMPLES: readonly Example[] = [
  { name: 'an identity assertion', spec: xaa({}) },
  { name: 'an identity assertion with everything', spec: xaa({ idpClientSecretRef: secret, targetClientSecretRef: secret, targetResource: 'https://mcp.example.net/mcp', scopes: ['a', 'b'], accessTokenScopes: ['c'], subjectProviderName: 'corp', subjectTokenType: 'urn:ietf:params:oauth:token-type:id_token', idpCaCertPath: '/ca.crt', targetCaCertPath: '/ca.crt', insecureTargetTokenUrl: true }) },
  { name: 'an identity assertion with what may be empty', spec: xaa({ subjectProviderName: '', subjectTokenType: '' }) },
  { name: 'an identity assertion for a target with plain http (it loads)', spec: xaa({ targetTokenUrl: 'http://as.example.net/token' }) },
  { name: 'an identity assertion without its object', spec: { type: 'xaa' }, problem: 'missing, "xaa" is required' },
  ...XAA_NEEDS.map((name) => ({ name: `an identity assertion without ${name}`, spec: xaa({ [name]: undefined }), problem: `spec.xaa.${name}  missing` })),
  ...WRONG_XAA.map(([name, value]) => ({ name: `no ${name} of an identity assertion: ${JSON.stringify(value)}`, spec: xaa({ ...(name.endsWith('ClientAuth') ? { [name.replace('Auth', 'Id')]: undefined } : {}), [name]: value }), problem: `spec.xaa.${name}` })),
  ...XAA_LEGS.flatMap((leg) => [
    { name: `an identity assertion without ${leg}ClientId`, spec: xaa({ [`${leg}ClientId`]: undefined }), problem: `spec.xaa.${leg}ClientId  missing, needed where there is no "${leg}ClientAuth"` },
    { name: `a secret without a client at ${leg}`, spec: xaa({ [`${leg}ClientId`]: undefined, [`${leg}ClientSecretRef`]: secret }), problem: `"${leg}ClientSecretRef" needs "${leg}ClientId"` },
    { name: `both ways to say who we are at ${leg}`, spec: xaa({ [`${leg}ClientAuth`]: { method: 'none', clientId: 'us' } }), problem: `"${leg}ClientAuth" replaces` },
    { name: `a client without an id at ${leg}`, spec: xaa({ [`${leg}ClientId`]: undefined, [`${leg}ClientAuth`]: { method: 'tokenFile', tokenFile: {} } }), problem: `expected a "clientId" in "${leg}ClientAuth"` },
  ]),
  { name: 'an issuer to name that nothing discovers at idp', spec: xaa({ idpClientId: undefined, idpClientAuth: FOR_ISSUER }), problem: 'no issuer is discovered here' },
  { name: 'an issuer to name at the target, whose targetAudience is that', spec: xaa({ targetClientId: undefined, targetClientAuth: FOR_ISSUER }) },
  ...XAA_LEGS.flatMap((leg) => NAMED_CLIENTS.map(([name, clientAuth]) => ({ name: `at ${leg} a client with ${name}`, spec: xaa({ [`${leg}ClientId`]: undefined, [`${leg}ClientAuth`]: clientAuth }) }))),
]
