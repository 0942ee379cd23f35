import { generateKeyPairSync, sign } from 'node:crypto'
import { CompactEncrypt, CompactSign, importJWK, SignJWT, UnsecuredJWT } from 'jose'
import { createKey } from '../../upstreams/idp.ts'
import type { Rig } from '../rig.ts'
import { ID_JAG, jag, jagClaims, OTHER } from './rig.ts'

export interface Wrong {
  readonly name: string
  readonly make: (rig: Rig) => string | Promise<string>
  /** What the log says. */
  readonly why: RegExp
}

const text = new TextEncoder()
const segment = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const now = (rig: Rig): number => Math.floor(rig.clock.now() / 1_000)

/** With claims that are wrong. */
const claims = (name: string, why: RegExp, more: (rig: Rig) => Readonly<Record<string, unknown>>): Wrong => ({
  name,
  why,
  make: (rig) => jag(rig, more(rig)),
})

/** With a header that is wrong, signed as it should be. */
const header = (name: string, why: RegExp, more: Readonly<Record<string, unknown>>): Wrong => ({
  name,
  why,
  make: (rig) => jag(rig, {}, more),
})

/** Signed with something that is no key of the issuer, though its header says so. */
const forged = (name: string, alg: string, why: RegExp, key: (rig: Rig) => Uint8Array): Wrong => ({
  name,
  why,
  make: (rig) =>
    new SignJWT(jagClaims(rig)).setProtectedHeader({ alg, kid: rig.idp.key.jwk.kid ?? '', typ: ID_JAG }).sign(key(rig)),
})

/** A right one, cut up and put together another way. */
const pieces = (name: string, why: RegExp, change: (parts: [string, string, string], rig: Rig) => string): Wrong => ({
  name,
  why,
  make: async (rig) => change((await jag(rig)).split('.') as [string, string, string], rig),
})

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

const NO_JWT = /no signed JWT/
const AUD = /^aud is not our issuer alone$/
const ISS = /^iss is not among/
const CLIENT = /^client_id is not the client/
const RESOURCE = /^resource is none of ours/
const KEY = /no key of the provider fits|signature is wrong/

const publicText = ({ idp }: Rig): Uint8Array => text.encode(JSON.stringify(idp.key.jwk))

/** Assertions that differ from a right one in one thing. */
export const WRONG: readonly Wrong[] = [
  header('typ JWT', /^typ is not/, { typ: 'JWT' }),
  header('typ of an access token', /^typ is not/, { typ: 'at+jwt' }),
  header('typ of a logout token', /^typ is not/, { typ: 'logout+jwt' }),
  header('no typ', /^typ is not/, { typ: undefined }),
  header('typ that only begins so', /^typ is not/, { typ: `${ID_JAG}2` }),
  header('typ with another prefix', /^typ is not/, { typ: `text/${ID_JAG}` }),
  header('typ that is a number', /^typ is not a string$/, { typ: 1 }),
  claims('aud somebody else', AUD, () => ({ aud: 'https://other.example' })),
  claims('no aud', AUD, () => ({ aud: undefined })),
  claims('aud an array of two', AUD, (rig) => ({ aud: [rig.issuer, 'https://other.example'] })),
  claims('aud ours twice', AUD, (rig) => ({ aud: [rig.issuer, rig.issuer] })),
  claims('aud an empty array', AUD, () => ({ aud: [] })),
  claims('aud an array in an array', AUD, (rig) => ({ aud: [[rig.issuer]] })),
  claims('aud the token endpoint', AUD, (rig) => ({ aud: `${rig.issuer}/oauth/token` })),
  claims('aud the resource', AUD, (rig) => ({ aud: `${rig.issuer}/mcp` })),
  claims('aud with a slash more', AUD, (rig) => ({ aud: `${rig.issuer}/` })),
  claims('aud in capitals', AUD, (rig) => ({ aud: rig.issuer.toUpperCase() })),
  claims('aud an object', AUD, (rig) => ({ aud: { [rig.issuer]: true } })),
  claims('iss somebody who is not in the list', ISS, () => ({ iss: 'https://idp.example.com' })),
  claims('iss ourselves', ISS, (rig) => ({ iss: rig.issuer })),
  claims('iss with a slash more', ISS, (rig) => ({ iss: `${rig.idp.url}/` })),
  claims('iss an array', ISS, (rig) => ({ iss: [rig.idp.url] })),
  claims('iss a name of objects', ISS, () => ({ iss: '__proto__' })),
  claims('no iss', ISS, () => ({ iss: undefined })),
  claims('client_id another client', CLIENT, () => ({ client_id: OTHER.id })),
  claims('client_id nobody', CLIENT, () => ({ client_id: 'nobody' })),
  claims('client_id an array', CLIENT, () => ({ client_id: [OTHER.id] })),
  claims('no client_id', CLIENT, () => ({ client_id: undefined })),
  claims('client_id null', CLIENT, () => ({ client_id: null })),
  claims('azp in the place of client_id', CLIENT, () => ({ client_id: undefined, azp: 'nightly-report' })),
  claims('a resource of nobody', RESOURCE, () => ({ resource: 'https://other.example/mcp' })),
  claims('the resource and one more', RESOURCE, (rig) => ({ resource: [`${rig.url}/mcp`, 'https://other.example'] })),
  claims('an empty array of resources', RESOURCE, () => ({ resource: [] })),
  claims('a resource that is a number', RESOURCE, () => ({ resource: 1 })),
  claims('a resource below ours', RESOURCE, (rig) => ({ resource: `${rig.url}/mcp/x` })),
  claims('an empty resource', RESOURCE, () => ({ resource: '' })),
  claims('exp in eleven minutes', /more than 10 minutes ahead/, (rig) => ({ exp: now(rig) + 660 })),
  claims('exp in a thousand years', /more than 10 minutes ahead/, () => ({ exp: 4e10 })),
  claims('exp that has passed', /^it has expired$/, (rig) => ({ exp: now(rig) - 6 })),
  claims('exp now less the tolerance', /^it has expired$/, (rig) => ({ exp: now(rig) - 5 })),
  claims('no exp', /^exp is no number$/, () => ({ exp: undefined })),
  claims('exp as text', /^exp is no number$/, (rig) => ({ exp: String(now(rig) + 300) })),
  claims('exp in milliseconds', /more than 10 minutes ahead/, (rig) => ({ exp: rig.clock.now() + 300_000 })),
  claims('nbf ahead', /^nbf is still to come$/, (rig) => ({ nbf: now(rig) + 6 })),
  claims('nbf as text', /^nbf is no number$/, () => ({ nbf: '1' })),
  claims('no iat', /^iat is missing$/, () => ({ iat: undefined })),
  claims('iat ahead', /^iat is still to come$/, (rig) => ({ iat: now(rig) + 6 })),
  claims('iat as text', /^iat is no number$/, () => ({ iat: '1' })),
  claims('no jti', /^jti is no text/, () => ({ jti: undefined })),
  claims('an empty jti', /^jti is no text/, () => ({ jti: '' })),
  claims('a jti that is a number', /^jti is no text/, () => ({ jti: 7 })),
  claims('a jti that is too long', /^jti is no text/, () => ({ jti: 'x'.repeat(1_025) })),
  claims('no sub', /^sub is no text/, () => ({ sub: undefined })),
  claims('an empty sub', /^sub is no text/, () => ({ sub: '' })),
  claims('a sub that is a number', /^sub is no text/, () => ({ sub: 1 })),
  claims('a sub that is too long', /^sub is no text/, () => ({ sub: 'x'.repeat(1_025) })),
  claims('a scope that is an array', /^scope is no text$/, () => ({ scope: ['mcp:read'] })),
  claims('a key that it is bound to', /^it is bound to a key/, () => ({ cnf: { jkt: 'x' } })),
  claims('rights finer than scopes', /^authorization_details/, () => ({ authorization_details: [{ type: 'x' }] })),
  claims('more than 16 KiB', /more than 16384 characters/, () => ({ pad: 'x'.repeat(13_000) })),
  header('an extension that has to be understood', /^crit names/, { crit: ['b64'], b64: true }),
  header('a kid of nobody', KEY, { kid: 'nobody' }),
  header('another alg of the same key type', KEY, { alg: 'RS256', kid: 'x', jku: 'https://attacker.example/jwks' }),
  { name: 'nothing in it', why: NO_JWT, make: () => 'x' },
  { name: 'only dots', why: NO_JWT, make: () => '..' },
  {
    name: 'alg none',
    why: /^alg is not accepted$/,
    make: (rig) => {
      const [, body] = new UnsecuredJWT(jagClaims(rig)).encode().split('.')
      return `${segment({ alg: 'none', typ: ID_JAG })}.${body}.`
    },
  },
  forged('HS256 with the public key as secret', 'HS256', /^alg is not accepted$/, publicText),
  forged('HS512 with the public key as secret', 'HS512', /^alg is not accepted$/, publicText),
  {
    name: 'a key of somebody else under the kid of the issuer',
    why: KEY,
    make: async (rig) => {
      const key = await createKey('RS256', rig.idp.key.jwk.kid)
      return key.sign(jagClaims(rig), { typ: ID_JAG })
    },
  },
  {
    name: 'a key that comes along in the header',
    why: KEY,
    make: async (rig) => {
      const key = await createKey('ES256', 'mine')
      return key.sign(jagClaims(rig), { typ: ID_JAG, jwk: key.jwk })
    },
  },
  {
    name: 'a key of another algorithm',
    why: KEY,
    make: (rig) => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const head = segment({ alg: 'ES256', kid: rig.idp.key.jwk.kid, typ: ID_JAG })
      const signed = `${head}.${segment(jagClaims(rig))}`
      return `${signed}.${sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
    },
  },
  {
    name: 'nested: a JWT whose payload is the right one',
    why: NO_JWT,
    make: async (rig) => {
      const inner = await jag(rig)
      const key = (await createKey('ES256', 'mine')) as { jwk: { kid?: string } }
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      return new CompactSign(text.encode(inner))
        .setProtectedHeader({ alg: 'ES256', kid: key.jwk.kid ?? '', typ: ID_JAG, cty: 'JWT' })
        .sign(privateKey)
    },
  },
  {
    name: 'encrypted for a key that we publish',
    why: NO_JWT,
    make: async (rig) =>
      new CompactEncrypt(text.encode(await jag(rig)))
        .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', typ: ID_JAG })
        .encrypt(await importJWK({ ...rig.idp.key.jwk, use: 'enc', alg: 'RSA-OAEP-256' })),
  },
  pieces('no signature', KEY, ([head, body]) => `${head}.${body}.`),
  pieces('half a signature', KEY, ([head, body, mac]) => `${head}.${body}.${mac.slice(0, 172)}`),
  pieces('a signature of another payload', KEY, ([head, , mac], rig) =>
    [head, segment(jagClaims(rig, { sub: 'admin' })), mac].join('.'),
  ),
  pieces('a fourth part', NO_JWT, (parts) => [...parts, 'x'].join('.')),
  pieces('padding', NO_JWT, ([head, body, mac]) => `${head}.${body}=.${mac}`),
  pieces('a blank at the end', NO_JWT, (parts) => `${parts.join('.')} `),
  pieces('stray bits in the signature', NO_JWT, ([head, body, mac]) => {
    const last = ALPHABET.indexOf(mac.slice(-1))
    return `${head}.${body}.${mac.slice(0, -1)}${ALPHABET[last + 1]}`
  }),
  pieces('kid twice in the header', NO_JWT, ([, body, mac], { idp }) => {
    const { kid = '' } = idp.key.jwk
    return [segment(`{"alg":"RS256","typ":"${ID_JAG}","kid":"a","kid":"${kid}"}`), body, mac].join('.')
  }),
  pieces('client_id twice', NO_JWT, ([head, , mac], rig) => {
    const body = JSON.stringify(jagClaims(rig)).replace('{', '{"client_id":"other",')
    return [head, segment(body), mac].join('.')
  }),
  pieces('a payload that is an array', NO_JWT, ([head, , mac]) => [head, segment('[]'), mac].join('.')),
  pieces('a payload that is no UTF-8', NO_JWT, ([head, , mac]) =>
    [head, Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url'), mac].join('.'),
  ),
]
